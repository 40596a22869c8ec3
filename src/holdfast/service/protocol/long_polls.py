"""Long polls: requests of workers that wait for work, thousands at once.

Requests with the same agents and tags are of one kind. A few of each kind have a standing claim,
which the engine serves in the commit that makes work ready; the others are queued behind them and
cost the engine nothing.
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
ClaimKind = tuple[tuple[str, ...], str, tuple[str, ...], bool, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class ClaimOptions:
    """The greatest number of tasks, the key of the request if any, tasks to pass by, and `bare`.

    `bare` includes tasks that name no function and steps that their file gives no program; without
    it, those of `equipped` agents are included.
    """

    most: int = 1
    request: str | None = None
    passing: tuple[str, ...] = ()
    bare: bool = True
    equipped: tuple[str, ...] = ()


class LongPoll:
    """One waiting request; the future `arrived` gets the tasks that are claimed for it."""

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
        self.standing_claim.equipped = options.equipped
        # The worker is on another machine, so the whole of each task is read at once.
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
            self.standing_claim.equipped,
        )

    def _count_room(self) -> int:
        return 0 if self._has_tasks else self.standing_claim.most

    def _deliver(self, claimed: Claimed) -> None:
        """Pass on claimed tasks; the writer calls this, so it must neither wait nor fail."""
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
        """Give back the tasks that have arrived, and those that are still to arrive."""
        self._is_abandoned = True
        if self.arrived.done():
            self.release(self.arrived.result())

    def release(self, claimed: Claimed) -> None:
        with suppress(HoldfastError):
            self._work.give_back(claimed.read())


@dataclass(kw_only=True)
class WaitingClaims:
    """The long polls of one kind: a few with a standing claim, the others queued in order."""

    standing: set[LongPoll] = field(default_factory=set)
    queued: deque[LongPoll] = field(default_factory=deque)


class LongPolls:
    """The long polls of one event loop, on which every method is to be called."""

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
        """A long poll for the claim of a worker, to `wait` with."""
        return LongPoll(self._engine, terms, options)

    async def wait(
        self, long_poll: LongPoll, seconds: float, gone: asyncio.Future[None]
    ) -> Claimed | None:
        """The tasks claimed before the time is up, the caller is `gone`, or this is closed."""
        claims = self._waiting_by_kind.setdefault(long_poll.kind, WaitingClaims())
        claims.queued.append(long_poll)
        self._add_standing_claims(claims)
        ends: set[asyncio.Future[Any]] = {long_poll.arrived, gone, self._closing}
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            self._remove(long_poll, claims)
            if not long_poll.arrived.done() and long_poll.remove_standing_claim is not None:
                # The writer answers this after all deliveries that were under way at the removal.
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
        """End every long poll with the tasks that have arrived."""
        if not self._closing.done():
            self._closing.set_result(None)
        self._poller.cancel()
        self._unsubscribe()

    def _add_standing_claims(self, claims: WaitingClaims) -> None:
        """Give standing claims to queued long polls up to the limit, and have them served."""
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
        """Remove a long poll from its kind; removing its standing claim again changes nothing."""
        if long_poll.remove_standing_claim is None:
            claims.queued.remove(long_poll)
        else:
            long_poll.remove_standing_claim()
            claims.standing.discard(long_poll)
            self._add_standing_claims(claims)
            if long_poll.arrived.done():
                # More tasks may be ready than this long poll took.
                self._serve_standing_claims(claims)
        # A long poll that came after the last of these had left is in new `WaitingClaims`.
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
        """Note that another process, or a commit without claims, may have made tasks ready."""
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
    """The long polls of a process without a server, made on the loop of the first call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._long_polls: LongPolls | None = None

    async def wait(
        self, terms: ClaimTerms, options: ClaimOptions, seconds: float
    ) -> list[Assignment]:
        """The tasks claimed before the time is up, for a caller that never hangs up."""
        polls = self._long_polls = self._long_polls or LongPolls(self._engine)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        claimed = await polls.wait(LongPoll(self._engine, terms, options), seconds, gone)
        return [] if claimed is None else claimed.read()
