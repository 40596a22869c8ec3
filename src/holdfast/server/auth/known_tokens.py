"""Known tokens: tokens that were found good, kept until the store changes or their time ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.model.token import AccessToken
from holdfast.service.service import Service

# Seconds for which a token counts as good after a look, whatever is heard of other processes.
GOOD_FOR = 1.0
# The least time between two looks: on a busy store there is a change with every call.
MIN_READ_INTERVAL = 0.05
MAX_TOKENS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownToken:
    access: AccessToken
    # The grants and changes that were known when the look began, and the time of its begin.
    grants: int
    doubts: int
    at: float


class KnownTokens:
    """Tokens that were found good; each is looked up again after the store has changed.

    No caller waits for that second look: meanwhile the token counts as good, for a second at the
    most. A grant or revocation by this process is known at once.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._doubts = 0
        # How often this process has granted or revoked a token.
        self.grants = 0
        self._found: dict[str, KnownToken] = {}
        self._looks: dict[str, tuple[int, asyncio.Future[AccessToken | None]]] = {}
        self._again: asyncio.Future[None] | None = None
        self._leave = (
            service.on_change(self._on_change, served=False),
            service.tokens.on_grant(self._on_grant),
        )

    def find_cached(self, secret: str) -> KnownToken | None:
        """The token if it was found good lately, without waiting for the store."""
        found = self._found.get(secret)
        if found is None or found.grants != self.grants:
            return None
        return found if self.service.clock.monotonic() < found.at + GOOD_FOR else None

    async def find_and_refresh(self, secret: str) -> AccessToken | None:
        """What a token may do; only a token that is not known yet waits for the store."""
        found = self.find_cached(secret)
        if found is None:
            return await self.look(secret)
        doubted = found.doubts != self._doubts and secret not in self._looks
        if doubted and self.service.clock.monotonic() >= found.at + MIN_READ_INTERVAL:
            self._again = asyncio.ensure_future(self._refresh(secret))
        return found.access

    async def _refresh(self, secret: str) -> None:
        # While the store cannot be reached, the time of the token goes on running out.
        with suppress(HoldfastError):
            await self.look(secret)

    async def find_unchanged(self, secret: str) -> AccessToken | None:
        """The same, with no change of the store overlooked."""
        found = self.find_cached(secret)
        if found is not None and found.doubts == self._doubts:
            return found.access
        return await self.look(secret)

    async def look(self, secret: str) -> AccessToken | None:
        """The same as `find`; all callers between two changes of the store share one look."""
        under_way = self._looks.get(secret)
        if under_way is None or under_way[0] != self._doubts or under_way[1].done():
            look = anyio.to_thread.run_sync(self.find, secret)
            under_way = self._doubts, asyncio.ensure_future(look)
            self._looks[secret] = under_way
            under_way[1].add_done_callback(lambda _: self._looks.pop(secret, None))
        # A caller that hangs up does not end the look for the others.
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
