"""Wakeups of threads: of all threads whose replies have come, each wakes the next one.

Threads that are woken together all ask for the interpreter, again and again while one of them has
it: a hundred of them took twice as long for their work as twenty.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import Any

from holdfast.store.deadlocks import call_after_replies
from holdfast.store.group_commit.entries import ReplyFuture


class ThreadWakeups:
    """Waiters that are to be woken; whoever is woken wakes the one behind it."""

    def __init__(self) -> None:
        self._waiters: deque[ThreadWaiter] = deque()
        self._is_called = False

    def add(self, waiter: ThreadWaiter) -> None:
        """Wake a waiter after those that were added before it; may be called from any thread."""
        self._waiters.append(waiter)
        if not self._is_called:
            self._is_called = True
            call_after_replies(self._wake_first)

    def _wake_first(self) -> None:
        # Before a waiter is taken: one that is added later calls this again.
        self._is_called = False
        self.wake_next()

    def wake_next(self) -> None:
        waiting = True
        while waiting:
            try:
                waiter = self._waiters.popleft()
            except IndexError:
                return
            waiter.wake()
            # A thread that was interrupted wakes nobody.
            waiting = waiter.left


WAKEUPS = ThreadWakeups()


class ThreadWaiter:
    """One wait of one thread."""

    __slots__ = ("_lock", "left")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.left = False

    def wait(self) -> None:
        """Block until this waiter is woken, and wake the next one then."""
        try:
            self._lock.acquire()
        except BaseException:
            self.left = True
            raise
        finally:
            WAKEUPS.wake_next()

    def wake(self) -> None:
        self._lock.release()


def wait_in_thread(future: Future[Any]) -> None:
    """Wait until another thread has settled a future; its result or error is left to the caller."""
    if future.done():
        return
    if isinstance(future, ReplyFuture):
        future.refuse_to_wait()
    waiter = ThreadWaiter()
    future.add_done_callback(lambda _: WAKEUPS.add(waiter))
    waiter.wait()
