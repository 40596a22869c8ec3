"""Workers that wait for work over long polls: thousands of them, a few of which stand in line.

Of each kind, which is the agents and tags they offer, a few have a standing claim, which the engine
serves in the very commit that makes work ready; the others wait behind them and cost it nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.model.task import Assignment
from holdfast.service.protocol.protocol import ClaimTerms

MAX_STANDING = 16

log = logging.getLogger("holdfast.service")
ClaimKind = tuple[tuple[str, ...], str, tuple[str, ...], bool]


@dataclass(frozen=True, kw_only=True)
class ClaimOptions:
    """How many tasks at most, under which name if any, which ones not, and whether bare ones."""

    most: int = 1
    request: str | None = None
    passing: tuple[str, ...] = ()
    bare: bool = True


class LongPoll:
    """One long poll; what it is given arrives in its `arrived`."""

    def __init__(self, engine: Engine, terms: ClaimTerms, options: ClaimOptions) -> None:
        self.arrived: asyncio.Future[Claimed] = asyncio.get_running_loop().create_future()
        self.is_repeatable = options.request is not None
        self._work = engine.work
        self._is_abandoned = False
        self.standing_claim: StandingClaim = engine.work.standing_claim(
            terms.worker,
            agents=terms.served_agents,
            tags=terms.tags,
            room=self._count_room,
            passing=lambda: options.passing,
            deliver=self._deliver,
        )
        self.standing_claim.lease = engine.work.lease(terms.lease)
        self.standing_claim.most = options.most
        self.standing_claim.request = options.request
        self.standing_claim.bare = options.bare
        # Its worker is elsewhere, and is told all there is.
        self.standing_claim.look_up_task = None
        self.remove_standing_claim: Callable[[], None] | None = None
        self._has_tasks = False

    @property
    def kind(self) -> ClaimKind:
        return (
            self.standing_claim.agents,
            self.standing_claim.tags,
            self.standing_claim.passed(),
            self.standing_claim.bare,
        )

    def _count_room(self) -> int:
        return 0 if self._has_tasks else self.standing_claim.most

    def _deliver(self, claimed: Claimed) -> None:
        """Called by the writer, which must neither wait nor fail."""
        if not claimed:
            return
        self._has_tasks = True
        try:
            self.arrived.get_loop().call_soon_threadsafe(self._set_arrived, claimed)
        except RuntimeError:
            log.warning("%d tasks came too late to be given to anybody", len(claimed))
            self.release(claimed)

    def _set_arrived(self, claimed: Claimed) -> None:
        if self._is_abandoned:
            self.release(claimed)
        elif not self.arrived.done():
            self.arrived.set_result(claimed)

    def release_all(self) -> None:
        """Give back what has come, and what may still be on its way."""
        self._is_abandoned = True
        if self.arrived.done():
            self.release(self.arrived.result())

    def release(self, claimed: Claimed) -> None:
        with suppress(HoldfastError):
            self._work.give_back(claimed.read())


@dataclass(kw_only=True)
class WaitingClaims:
    """Those of one kind: some stand, the others wait behind them in the order they came."""

    standing: set[LongPoll] = field(default_factory=set)
    queued: deque[LongPoll] = field(default_factory=deque)


class LongPolls:
    """To be used on one loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting_by_kind: dict[ClaimKind, WaitingClaims] = {}
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.Future[None] = self._loop.create_future()
        self._unsubscribe = engine.on_hint(self._on_hint, served=False)
        self._poller = self._loop.create_task(self._poll_store())

    @property
    def waiting(self) -> int:
        return sum(
            len(claims.standing) + len(claims.queued)
            for claims in [*self._waiting_by_kind.values()]
        )

    def make_long_poll(self, terms: ClaimTerms, options: ClaimOptions) -> LongPoll:
        """Who waits for what a worker asks for."""
        return LongPoll(self._engine, terms, options)

    async def wait(
        self, long_poll: LongPoll, seconds: float, gone: asyncio.Future[None]
    ) -> Claimed | None:
        """What the waiter is given before the time is up, it is gone, or this is closed."""
        claims = self._waiting_by_kind.setdefault(long_poll.kind, WaitingClaims())
        claims.queued.append(long_poll)
        self._add_standing_claims(claims)
        ends: set[asyncio.Future[Any]] = {long_poll.arrived, gone, self._closing}
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            self._remove(long_poll, claims)
            if not long_poll.arrived.done() and long_poll.remove_standing_claim is not None:
                # Written after whatever was on its way when it left.
                with suppress(HoldfastError):
                    await self._engine.work.pull.aio(long_poll.standing_claim)
        except asyncio.CancelledError:
            self._remove(long_poll, claims)
            long_poll.release_all()
            raise
        claimed = long_poll.arrived.result() if long_poll.arrived.done() else None
        if claimed is not None and gone.done() and not long_poll.is_repeatable:
            long_poll.release(claimed)
            return None
        return claimed

    def close(self) -> None:
        """Send everybody away with what they have."""
        if not self._closing.done():
            self._closing.set_result(None)
        self._poller.cancel()
        self._unsubscribe()

    def _add_standing_claims(self, claims: WaitingClaims) -> None:
        """Have as many stand as may, and ask for them what may be there."""
        stood = False
        while claims.queued and len(claims.standing) < MAX_STANDING:
            long_poll = claims.queued.popleft()
            claims.standing.add(long_poll)
            long_poll.remove_standing_claim = self._engine.work.add_standing_claim(
                long_poll.standing_claim
            )
            stood = True
        if stood:
            self._serve_standing_claims(claims)

    def _remove(self, long_poll: LongPoll, claims: WaitingClaims) -> None:
        """Stand in line no longer; once more changes nothing."""
        if long_poll.remove_standing_claim is None:
            claims.queued.remove(long_poll)
        else:
            long_poll.remove_standing_claim()
            claims.standing.discard(long_poll)
            self._add_standing_claims(claims)
            if long_poll.arrived.done():
                # There may be more where that came from.
                self._serve_standing_claims(claims)
        # Those who came after the last of this line had left stand in another.
        if (
            not claims.standing
            and not claims.queued
            and self._waiting_by_kind.get(long_poll.kind) is claims
        ):
            del self._waiting_by_kind[long_poll.kind]

    def _serve_standing_claims(self, claims: WaitingClaims) -> None:
        for long_poll in claims.standing:
            long_poll.standing_claim.may_have_more = True
        first = next(iter(claims.standing), None)
        if first is not None:
            with suppress(HoldfastError):
                self._engine.work.pull.submit(first.standing_claim)

    def _on_hint(self) -> None:
        """Another process, or a commit that could not serve, may have made something ready."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._serve_all_kinds)

    def _serve_all_kinds(self) -> None:
        for claims in self._waiting_by_kind.values():
            self._serve_standing_claims(claims)

    async def _poll_store(self) -> None:
        while True:
            await asyncio.sleep(self._engine.settings.poll)
            self._serve_all_kinds()


class OwnLongPolls:
    """A waiting room for a process of its own, made on the loop of the first who waits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._long_polls: LongPolls | None = None

    async def wait(
        self, terms: ClaimTerms, options: ClaimOptions, seconds: float
    ) -> list[Assignment]:
        """What somebody who never hangs up is given."""
        polls = self._long_polls = self._long_polls or LongPolls(self._engine)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        claimed = await polls.wait(LongPoll(self._engine, terms, options), seconds, gone)
        return [] if claimed is None else claimed.read()
