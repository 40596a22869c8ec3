"""What strangers show: counted before the store is asked, so that a flood of it costs no reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio.to_thread import run_sync

from holdfast.model.access import digest_secret
from holdfast.server.known_tokens import KnownTokens
from holdfast.server.limits import Limiter, Rate
from holdfast.server.problems import too_many

T = TypeVar("T")
# For so many seconds the store is not asked again what is good.
KNOWN_FOR = 1.0
# From all addresses together; who has many is no better off than who has one.
ALL = "everywhere"
OF_ALL = Rate(often=20, burst=300)


class Tries:
    """Who fails too often is looked up no more, unless what they show is among what is good."""

    def __init__(self, tokens: KnownTokens, failures: Rate | None) -> None:
        now = tokens.engine.clock.monotonic
        self._tokens = tokens
        self._one = Limiter(failures, now)
        self._all = Limiter(OF_ALL if failures is not None else None, now)
        self._good: frozenset[str] = frozenset()
        self._good_until = now()
        self._grants = tokens.grants
        self._reading = asyncio.Lock()

    async def look(
        self, address: str, secret: str, look: Callable[[], Awaitable[T | None]]
    ) -> T | None:
        """What `look` finds; raises `Problem` where too many from there were not good."""
        wait = self._take(address)
        if wait is not None and not await self._is_good(secret):
            raise too_many("too many wrong tokens came from this address", wait)
        found = await look()
        if found is not None and wait is None:
            self._one.give_back(address)
            self._all.give_back(ALL)
        return found

    def fail(self, address: str) -> None:
        """Count what cannot be good; raises `Problem` where that is too often."""
        wait = self._take(address)
        if wait is not None:
            raise too_many("too many wrong tokens came from this address", wait)

    def _take(self, address: str) -> float | None:
        wait = self._one.take(address)
        return self._all.take(ALL) if wait is None else wait

    async def _is_good(self, secret: str) -> bool:
        async with self._reading:
            engine, grants = self._tokens.engine, self._tokens.grants
            now = engine.clock.monotonic()
            if now >= self._good_until or grants != self._grants:
                self._good_until, self._grants = now + KNOWN_FOR, grants
                self._good = await run_sync(engine.access.good_digests)
        return digest_secret(secret) in self._good
