"""Wakeups of event loops: coroutines that wait for replies of one group wake their loop once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from holdfast.store.deadlocks import call_after_replies

_thread = threading.local()


class LoopWakeups:
    """Waiters of one event loop whose futures are done, and who have not been woken yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_called = False

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """Wake a waiter of the loop; may be called from any thread."""
        self._waiters.append(waiter)
        if not self._is_called:
            self._is_called = True
            call_after_replies(self._call_loop)

    def _call_loop(self) -> None:
        # Nobody waits in a closed loop.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._wake_waiters)

    def _wake_waiters(self) -> None:
        # Before the queue is emptied: a waiter that comes later calls the loop again.
        self._is_called = False
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)


async def wait_in_loop(future: Future[Any]) -> None:
    """Wait until another thread has settled a future; its result or error is left to the caller."""
    loop = asyncio.get_running_loop()
    wakeups: LoopWakeups | None = getattr(_thread, "wakeups", None)
    if wakeups is None or wakeups.loop is not loop:
        wakeups = _thread.wakeups = LoopWakeups(loop)
    waiter: asyncio.Future[None] = loop.create_future()
    wake = wakeups.wake
    future.add_done_callback(lambda _: wake(waiter))
    await waiter
