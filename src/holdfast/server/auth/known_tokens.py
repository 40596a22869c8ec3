"""Tokens that were found good, for as long as nothing says that they may not be any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.model.token import AccessToken
from holdfast.service.service import Service

# However much or little is heard of other processes, what was found is good for so many seconds.
GOOD_FOR = 1.0
# And is looked at again no sooner than this: on a busy store there is a change with every call.
MIN_READ_INTERVAL = 0.05
MAX_TOKENS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownToken:
    access: AccessToken
    # What had been heard when the look began, and when that was.
    grants: int
    doubts: int
    at: float


class KnownTokens:
    """Each is looked at again after changes of the store that come from elsewhere.

    Nobody waits for that: what was found before is good meanwhile, for a second at the most. What
    this process grants and revokes is known at once.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._doubts = 0
        # How often this process has granted or revoked one.
        self.grants = 0
        self._found: dict[str, KnownToken] = {}
        self._looks: dict[str, tuple[int, asyncio.Future[AccessToken | None]]] = {}
        self._again: asyncio.Future[None] | None = None
        self._leave = (
            service.on_change(self._on_change, served=False),
            service.tokens.on_grant(self._on_grant),
        )

    def find_cached(self, secret: str) -> KnownToken | None:
        """What was found of a token and is still good; it never waits."""
        found = self._found.get(secret)
        if found is None or found.grants != self.grants:
            return None
        return found if self.service.clock.monotonic() < found.at + GOOD_FOR else None

    async def recall(self, secret: str) -> AccessToken | None:
        """What a token may do; who has to wait for the store is who comes with a new one."""
        found = self.find_cached(secret)
        if found is None:
            return await self.look(secret)
        doubted = found.doubts != self._doubts and secret not in self._looks
        if doubted and self.service.clock.monotonic() >= found.at + MIN_READ_INTERVAL:
            self._again = asyncio.ensure_future(self._refresh(secret))
        return found.access

    async def _refresh(self, secret: str) -> None:
        # While the store is away, what was found is good no longer than it was.
        with suppress(HoldfastError):
            await self.look(secret)

    async def find_unchanged(self, secret: str) -> AccessToken | None:
        """The same, where nothing that was changed since may be overlooked."""
        found = self.find_cached(secret)
        if found is not None and found.doubts == self._doubts:
            return found.access
        return await self.look(secret)

    async def look(self, secret: str) -> AccessToken | None:
        """The same as `find`; of all who ask between two changes, one looks for the others too."""
        under_way = self._looks.get(secret)
        if under_way is None or under_way[0] != self._doubts or under_way[1].done():
            look = anyio.to_thread.run_sync(self.find, secret)
            under_way = self._doubts, asyncio.ensure_future(look)
            self._looks[secret] = under_way
            under_way[1].add_done_callback(lambda _: self._looks.pop(secret, None))
        # Whoever hangs up does not end it for the others.
        return await asyncio.shield(under_way[1])

    def find(self, secret: str) -> AccessToken | None:
        """What a token may do, as the store says now."""
        grants, doubts, at = self.grants, self._doubts, self.service.clock.monotonic()
        access = self.service.tokens.find(secret)
        if access is None:
            self._found.pop(secret, None)
        elif access.expires_at is None:
            if len(self._found) >= MAX_TOKENS:
                self._found.clear()
            self._found[secret] = KnownToken(access=access, grants=grants, doubts=doubts, at=at)
        return access

    def close(self) -> None:
        for leave in self._leave:
            leave()

    def _on_grant(self, _: Sequence[str]) -> None:
        self.grants += 1
        self._on_change()

    def _on_change(self) -> None:
        self._doubts += 1
