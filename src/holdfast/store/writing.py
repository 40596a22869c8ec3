"""Which thread writes, for those whom it calls back."""

from __future__ import annotations

import threading
from collections.abc import Callable

# What the thread that asks is about: whose writer it is, and whom it has still to tell.
thread = threading.local()


def is_writer() -> bool:
    """Whether this thread writes for everybody else, and so must not wait for a reply."""
    return getattr(thread, "writes", None) is not None


def writes_own() -> bool:
    """Whether this thread writes one operation, which it brought itself."""
    return getattr(thread, "own", False)


def once_told(callback: Callable[[], None]) -> None:
    """Call back when everybody was told whose group is being answered; elsewhere at once.

    To wake another thread before that would have both want the interpreter.
    """
    waiting: list[Callable[[], None]] | None = getattr(thread, "waiting", None)
    if waiting is None:
        callback()
    else:
        waiting.append(callback)
