"""Tokens that were found good, for as long as nothing says that they may not be any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from holdfast.engine.engine import Engine
from holdfast.model.access import Access

# However little is heard of other processes, one is looked at again after so many seconds.
GOOD_FOR = 1.0
MOST = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    access: Access
    doubts: int
    until: float


class KnownTokens:
    """Each is looked at once between two changes of the store that come from elsewhere.

    What this process grants and revokes is known at once.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._doubts = 0
        # How often this process has granted or revoked one.
        self.grants = 0
        self._found: dict[str, Found] = {}
        self._looks: dict[str, tuple[int, asyncio.Future[Access | None]]] = {}
        self._leave = (
            engine.on_hint(self._doubt, served=False),
            engine.on_grant(self._hear),
        )

    def at_hand(self, secret: str) -> Access | None:
        """What a token may do, where that need not be looked up; it never waits."""
        found = self._found.get(secret)
        if found is None or found.doubts != self._doubts:
            return None
        return found.access if self.engine.clock.monotonic() < found.until else None

    async def see(self, secret: str) -> Access | None:
        return self.at_hand(secret) or await self.look(secret)

    async def look(self, secret: str) -> Access | None:
        """The same as `find`; of all who ask between two changes, one looks for the others too."""
        under_way = self._looks.get(secret)
        if under_way is None or under_way[0] != self._doubts or under_way[1].done():
            look = anyio.to_thread.run_sync(self.find, secret)
            under_way = self._doubts, asyncio.ensure_future(look)
            self._looks[secret] = under_way
            under_way[1].add_done_callback(lambda _: self._looks.pop(secret, None))
        # Whoever hangs up does not end it for the others.
        return await asyncio.shield(under_way[1])

    def find(self, secret: str) -> Access | None:
        """What a token may do, as the store says now."""
        doubts = self._doubts
        until = self.engine.clock.monotonic() + GOOD_FOR
        access = self.engine.access.find(secret)
        if access is None:
            self._found.pop(secret, None)
        elif access.expires_at is None:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[secret] = Found(access=access, doubts=doubts, until=until)
        return access

    def close(self) -> None:
        for leave in self._leave:
            leave()

    def _hear(self, _: Sequence[str]) -> None:
        self.grants += 1
        self._doubt()

    def _doubt(self) -> None:
        self._doubts += 1
