"""The future of a reply, which is mostly there when asked for: it makes no condition until then."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import FINISHED, PENDING, RUNNING
from typing import TYPE_CHECKING, Any

# One for all of them, and held for a moment only; a callback may come back to it.
_lock = threading.RLock()


def _renew_lock() -> None:
    """In a child of a fork: a thread that is not there may have held it."""
    global _lock  # noqa: PLW0603 - of the process, as a fork is
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


class Reply(Future[Any]):
    """A future whose result is made of the reply by whoever asks for it first.

    It has a condition from when somebody waits for it, cancels it or is to be called back: as long
    as it has none, nobody has to hear that it ended.
    """

    _state = PENDING
    _result = None
    _exception = None
    _made: tuple[Any, BaseException | None] | None = None
    _awaited = False

    def __init__(self, read: Callable[[Any], Any] | None = None) -> None:
        # Not its parent's, by which each had a condition, a lock, a queue and two lists.
        self._read = read
        self._making = threading.Lock()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as its parent has it
            if name != "_condition":
                raise AttributeError(name)
            own = self.__dict__
            # Before it can be held: who ends this then has it, or has ended it already.
            own["_awaited"] = True
            own.setdefault("_waiters", [])
            own.setdefault("_done_callbacks", [])
            return own.setdefault("_condition", threading.Condition(_lock))

    def set_running_or_notify_cancel(self) -> bool:
        with _lock:
            if self._state == PENDING:
                self._state = RUNNING
                return True
        return super().set_running_or_notify_cancel()

    def set_result(self, result: object) -> None:
        with _lock:
            quietly = not self._awaited and self._state != FINISHED
            if quietly:
                self._result = result
                self._state = FINISHED
        if not quietly:
            super().set_result(result)

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - whatever is made
        there = self._state == FINISHED and self._exception is None
        reply = self._result if there else super().result(timeout)
        if self._read is None:
            return reply
        value, error = self._make(self._read, reply)
        if error is not None:
            raise error
        return value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        if error is not None or self._read is None:
            return error
        return self._make(self._read, super().result())[1]

    def _make(self, read: Callable[[Any], Any], reply: object) -> tuple[Any, BaseException | None]:
        with self._making:
            if self._made is None:
                try:
                    self._made = (read(reply), None)
                except BaseException as error:  # noqa: BLE001 - it is the caller's to see
                    self._made = (None, error)
        return self._made
