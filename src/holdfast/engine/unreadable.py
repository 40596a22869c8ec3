"""Rows that another release, or a hand, has written: what they raise, and how to tell of it."""

from __future__ import annotations

from holdfast.errors import HoldfastError

UNREADABLE = (
    *(HoldfastError, LookupError, TypeError, ValueError),
    *(OverflowError, RecursionError),
)


def tell_problem(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\x00", "")[:1_000]
