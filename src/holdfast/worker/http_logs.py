"""What the HTTP library logs of a call, without the secrets that the call carries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from holdfast.worker.redaction import Redaction

_known: ContextVar[Redaction | None] = ContextVar("known", default=None)
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy")


class _Redacting(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        known = _known.get()
        if known is not None:
            record.msg, record.args = known.text(record.getMessage()), None
        return True


@contextmanager
def redacting(known: Redaction) -> Iterator[None]:
    """Have whatever is logged meanwhile, in this context, tell no secret."""
    token = _known.set(known)
    try:
        yield
    finally:
        _known.reset(token)


for _each in _LOGGERS:
    logging.getLogger(_each).addFilter(_Redacting())
