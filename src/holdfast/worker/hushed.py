"""Keeps the HTTP client from logging what it asks and hears for us: a secret may be in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ours: ContextVar[bool] = ContextVar("holdfast_hushed", default=False)


class _Hush(logging.Filter):
    def filter(self, _: logging.LogRecord) -> bool:
        return not _ours.get()


# What is below logs the headers of answers too.
for _each in (
    "httpx",
    "httpcore.connection",
    "httpcore.http11",
    "httpcore.http2",
    "httpcore.proxy",
):
    logging.getLogger(_each).addFilter(_Hush())


@contextmanager
def hushed() -> Iterator[None]:
    before = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(before)
