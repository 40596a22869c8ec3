"""Wakeups of threads: of all threads whose replies have come, each wakes the next one.

Threads that are woken together all ask for the interpreter, again and again while one of them has
it: with hundreds, that takes most of the time of their waits (ADR 38).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from holdfast.store.deadlocks import call_after_replies
from holdfast.store.group_commit.entries import ReplyFuture


class ThreadWakeups:
    """Waiters that are to be woken, by one chain: whoever it wakes wakes the one behind it."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew, as in a forked child: the threads of the chain are not there."""
        self._waiters: deque[ThreadWaiter] = deque()
        # Holds one token while no chain is under way; taking it out is atomic.
        self._token: deque[None] = deque([None])
        self._is_called = False

    def add(self, *waiters: ThreadWaiter) -> None:
        """Wake waiters one after the other, behind those that were added before them."""
        self._waiters.extend(waiters)
        if not self._is_called:
            try:
                self._is_called = True
                call_after_replies(self._begin_chain)
            except BaseException:
                # An interrupt may have come before the call, and nothing else would wake them.
                self._begin_chain()
                raise

    def wait_behind_others(self) -> None:
        """Wait until all that are to be woken now have been woken."""
        if self._waiters:
            waiter = ThreadWaiter(self)
            self.add(waiter)
            waiter.wait()

    def _begin_chain(self) -> None:
        # Before the waiters are looked at: one that is added later calls this again.
        self._is_called = False
        while self._waiters:
            try:
                self._token.pop()
            except IndexError:
                # The chain that is under way comes to them.
                return
            self.continue_chain()

    def continue_chain(self) -> None:
        """Wake the next waiter, which goes on with the chain, or end the chain."""
        with suppress(IndexError):
            while True:
                waiter = self._waiters.popleft()
                waiter.continues_chain = True
                waiter.wake()
                if not waiter.left:
                    return
        self._token.append(None)
        if self._waiters:
            # They were added after the last look, and saw that a chain was under way.
            self._begin_chain()


class ThreadWaiter:
    """One wait of one thread."""

    __slots__ = ("_lock", "_wakeups", "continues_chain", "left")

    def __init__(self, wakeups: ThreadWakeups) -> None:
        self._wakeups = wakeups
        self._lock = threading.Lock()
        self._lock.acquire()
        self.continues_chain = False
        # Whether the thread was interrupted, so that it may not go on with the chain.
        self.left = False

    def wait(self) -> None:
        """Block until this waiter is woken."""
        try:
            self._lock.acquire()
        except BaseException:
            self.left = True
            raise
        finally:
            if self.continues_chain:
                self._wakeups.continue_chain()

    def wake(self) -> None:
        self._lock.release()


# One chain for all stores of a process: its threads compete for one interpreter.
WAKEUPS = ThreadWakeups()
os.register_at_fork(after_in_child=WAKEUPS.clear)


def wait_in_thread(future: Future[Any]) -> None:
    """Wait until another thread has settled a future; its result or error is left to the caller."""
    if future.done():
        return
    if isinstance(future, ReplyFuture):
        future.refuse_to_wait()
    waiter = ThreadWaiter(WAKEUPS)
    future.add_done_callback(lambda _: WAKEUPS.add(waiter))
    waiter.wait()
