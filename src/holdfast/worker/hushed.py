"""Keeps the HTTP client from logging the addresses it asks for us: a secret may be in one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ours: ContextVar[bool] = ContextVar("holdfast_hushed", default=False)


class _Hush(logging.Filter):
    def filter(self, _: logging.LogRecord) -> bool:
        return not _ours.get()


logging.getLogger("httpx").addFilter(_Hush())


@contextmanager
def hushed() -> Iterator[None]:
    before = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(before)
