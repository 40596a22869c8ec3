"""Answers of the writer that coroutines wait for: all of a group wake their loop once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from holdfast.store.deadlocks import call_after_replies

_thread = threading.local()


class Arrivals:
    """Those of one loop that have what they wait for, and do not know it yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._came: deque[asyncio.Future[None]] = deque()
        self._called = False

    def bring(self, waiter: asyncio.Future[None]) -> None:
        """Have somebody of the loop go on, from whatever thread this is called."""
        self._came.append(waiter)
        if not self._called:
            self._called = True
            call_after_replies(self._call)

    def _call(self) -> None:
        # A loop that was closed has nobody left who waits.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # Before it is emptied: who comes after that calls again.
        self._called = False
        while self._came:
            waiter = self._came.popleft()
            if not waiter.done():
                waiter.set_result(None)


async def arrive(future: Future[Any]) -> None:
    """Wait until a future that another thread settles is done; its word is for who asks it."""
    loop = asyncio.get_running_loop()
    arrivals: Arrivals | None = getattr(_thread, "arrivals", None)
    if arrivals is None or arrivals.loop is not loop:
        arrivals = _thread.arrivals = Arrivals(loop)
    waiter: asyncio.Future[None] = loop.create_future()
    bring = arrivals.bring
    future.add_done_callback(lambda _: bring(waiter))
    await waiter
