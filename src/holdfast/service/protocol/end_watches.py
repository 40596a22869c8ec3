"""End watches: calls of workers elsewhere that wait until an attempt of theirs is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError

# After commits of other processes the store is looked at so often at the most.
LOOK_AGAIN_SECONDS = 0.1

AttemptKey = tuple[str, int]

log = logging.getLogger("holdfast.server")


class EndWatches:
    """The calls of one event loop that wait for ends, on which every method is to be called.

    Ends that this process writes are told at once. The store is asked about the others after a
    hint, and now and then.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.Future[None] = self._loop.create_future()
        self._waiting: dict[AttemptKey, set[asyncio.Future[None]]] = {}
        self._hinted = asyncio.Event()
        self._unsubscribe = (
            engine.on_attempts_ended(self._on_ended),
            engine.on_hint(self._on_hint, served=False),
        )
        self._looks = self._loop.create_task(self._look_for_ends())

    async def wait(
        self, attempts: Collection[AttemptKey], seconds: float, gone: asyncio.Future[None]
    ) -> set[AttemptKey]:
        """Those of some attempts that are over, once there is one, the time is up or none waits."""
        ended: asyncio.Future[None] = self._loop.create_future()
        for key in attempts:
            self._waiting.setdefault(key, set()).add(ended)
        try:
            # Looked at after this has begun to listen, so that no end falls in between.
            over = await self._engine.work.attempts_over.aio(attempts)
            if over or not attempts:
                return over
            ends: set[asyncio.Future[Any]] = {ended, gone, self._closing}
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for key in attempts:
                self._forget(key, ended)
        return await self._engine.work.attempts_over.aio(attempts) if ended.done() else set()

    def close(self) -> None:
        """Answer all calls that wait."""
        if not self._closing.done():
            self._closing.set_result(None)
        self._looks.cancel()
        for unsubscribe in self._unsubscribe:
            unsubscribe()

    def _forget(self, key: AttemptKey, ended: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key, set())
        waiting.discard(ended)
        if not waiting:
            self._waiting.pop(key, None)

    def _on_ended(self, keys: Iterable[AttemptKey]) -> None:
        told = list(keys)
        # The writer calls this, and few of the attempts are of workers elsewhere.
        if any(key in self._waiting for key in told):
            self._call_soon(self._wake, told)

    def _on_hint(self) -> None:
        if self._waiting:
            self._call_soon(self._hinted.set)

    def _call_soon(self, call: Any, *given: object) -> None:  # noqa: ANN401 - any callback
        try:
            self._loop.call_soon_threadsafe(call, *given)
        except RuntimeError:
            # The loop has ended, and nobody waits any more.
            return

    def _wake(self, keys: Iterable[AttemptKey]) -> None:
        for key in keys:
            for ended in self._waiting.get(key, ()):
                if not ended.done():
                    ended.set_result(None)

    async def _look_for_ends(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._engine.settings.poll):
                    await self._hinted.wait()
            except TimeoutError:
                pass
            self._hinted.clear()
            if self._waiting:
                # A store that is away is asked again: calls wait here as long as the server runs.
                try:
                    self._wake(await self._engine.work.attempts_over.aio(list(self._waiting)))
                except HoldfastError as error:
                    log.debug("the store tells of no ends: %s", error)
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
