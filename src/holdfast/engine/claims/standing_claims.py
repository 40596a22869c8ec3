"""Those of this process who take ready work in the very commit that makes it ready."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engine.claims import picker
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.core.operation import Claim, Pull, TaskLookup
from holdfast.engine.core.unit_of_work import DirectStartRoom, UnitOfWork
from holdfast.store.database import Contended, Row

log = logging.getLogger("holdfast.engine")
MOST_AT_ONCE = 1_000


@dataclass(kw_only=True, eq=False)
class StandingClaim:
    """A worker's standing claim; `hungry` as long as there may be more than it was given."""

    worker: str
    agents: tuple[str, ...]
    tags: str
    lease: int
    # How many more it takes; asked when the operations are taken that will be written with it.
    room: Callable[[], int]
    passed: Callable[[], tuple[str, ...]]
    # After the commit, in the writer's thread: it must neither wait nor fail.
    deliver: Callable[[Claimed], None]
    # Whether it takes tasks, too, that name no function, and steps whose file has no program.
    bare: bool = True
    # At most so many with one commit.
    most: int = MOST_AT_ONCE
    # The same one again gets the same tasks.
    request: str | None = None
    # How the rest of a task is read when it is asked for; without it all of it is given at once.
    look_up_task: TaskLookup | None = None
    may_have_more: bool = True
    free: int = 0

    def direct_start_room(self) -> DirectStartRoom | None:
        """The room for what is unblocked: of one who takes what one agent does, in turn."""
        if self.free <= 0 or len(self.agents) != 1 or self.bare:
            return None
        if self.request is not None or self.passed():
            return None
        (agent,) = self.agents
        # Not only so many as it claims at once: each takes the place of one that was reported.
        room = min(self.free, MOST_AT_ONCE)
        return DirectStartRoom(
            worker=self.worker,
            agent=agent,
            tags=self.tags,
            lease=self.lease,
            room=room,
        )

    def claim(self, given: int) -> Claim | None:
        """Ask for what there is room for beside what was given."""
        room = min(self.free, self.most) - given
        if room <= 0:
            return None
        return Claim(
            worker=self.worker,
            agents=self.agents,
            tags=self.tags,
            count=room,
            lease=self.lease,
            passed=self.passed(),
            bare=self.bare,
            request=self.request,
            look_up_task=self.look_up_task,
        )


HandOver = list[tuple[StandingClaim, Claimed]]
NOTHING_CLAIMED = Claimed(secret=b"", rows=[], given={}, runs={}, around={})


class StandingClaims:
    def __init__(self) -> None:
        # Replaced, never changed, so that the writer can walk it without the lock.
        self._standing_claims: tuple[StandingClaim, ...] = ()
        self._lock = threading.Lock()
        self._failing = False
        # Whose room was offered to what a group unblocks, until that group has been served.
        self._direct_start_claim: StandingClaim | None = None

    def add(self, standing_claim: StandingClaim) -> Callable[[], None]:
        """Serve one more from now on; returns the way out."""
        with self._lock:
            self._standing_claims = (*self._standing_claims, standing_claim)

        def remove() -> None:
            with self._lock:
                self._standing_claims = tuple(
                    each for each in self._standing_claims if each is not standing_claim
                )

        return remove

    def note_room(self) -> None:
        """Note the room of each: a place is free in the group of the report that gives it up."""
        for standing_claim in self._standing_claims:
            try:
                standing_claim.free = standing_claim.room()
            except Exception:
                standing_claim.free = 0
                log.exception("%s cannot tell how many tasks it takes", standing_claim.worker)

    def choose_direct_start(self) -> DirectStartRoom | None:
        """Offer the room of the first who has any; to a group that is written again, none."""
        failed, self._direct_start_claim = self._direct_start_claim is not None, None
        if failed:
            return None
        for standing_claim in self._standing_claims:
            # Who cannot tell what it passes by is found out where it claims.
            with suppress(Exception):
                if (room := standing_claim.direct_start_room()) is not None:
                    self._direct_start_claim = standing_claim
                    return room
        return None

    def serve(self, work: UnitOfWork, pulls: Collection[Pull]) -> HandOver:
        """Give what was started for it to who has offered room for it, and claim.

        That is for whoever asked, and for the others when this group may have work for them.

        When that fails the group is written again, and then for those alone who asked: nobody
        else's operation is to fail for it.
        """
        asked = {pull.standing_claim for pull in pulls}
        work.claims_served = not self._failing
        to_try = self._claims_to_try(work) if work.claims_served else []
        started = work.direct_start.started if work.direct_start else []
        if not asked and not to_try and not started:
            self._direct_start_claim = None
            return []
        self._failing = True
        try:
            handed = self._claim(work, {*asked, *to_try}, started)
        except Contended:
            raise
        except Exception as error:
            if not to_try and not started:
                raise
            log.warning("the group is written again without its standing claims: %r", error)
            raise Contended(str(error)) from error
        self._failing, self._direct_start_claim = False, None
        return handed

    def _claim(self, work: UnitOfWork, chosen: AbstractSet[object], started: list[Row]) -> HandOver:
        handed: HandOver = []
        # Where one of a kind found too little, the others of it would find nothing.
        exhausted_kinds: set[object] = set()
        for standing_claim in self._claims_in_order():
            rows = started if standing_claim is self._direct_start_claim else []
            if standing_claim not in chosen and not rows:
                continue
            kind = (
                standing_claim.agents,
                standing_claim.tags,
                standing_claim.passed(),
                standing_claim.bare,
            )
            wants = standing_claim in chosen and kind not in exhausted_kinds
            given = _take_tasks(work, standing_claim, rows, wants=wants)
            if given is not None:
                handed.append((standing_claim, given))
                if (
                    wants
                    and not given.repeated
                    and len(given) < min(standing_claim.free, standing_claim.most)
                ):
                    exhausted_kinds.add(kind)
            elif not wants:
                handed.append((standing_claim, NOTHING_CLAIMED))
        return handed

    def _claims_in_order(self) -> Iterator[StandingClaim]:
        """Those that are served, and who has left since its room was offered."""
        standing_claims = self._standing_claims
        yield from standing_claims
        if self._direct_start_claim is not None and self._direct_start_claim not in standing_claims:
            yield self._direct_start_claim

    def _claims_to_try(self, work: UnitOfWork) -> list[StandingClaim]:
        ready = work.ready or work.maybe_ready
        return [each for each in self._standing_claims if each.may_have_more or ready]


def _take_tasks(
    work: UnitOfWork, standing_claim: StandingClaim, given: list[Row], *, wants: bool
) -> Claimed | None:
    claim = standing_claim.claim(len(given)) if wants else None
    if wants:
        # Unless a commit says otherwise: without room it was not offered what may be there.
        standing_claim.may_have_more = True
    if claim is None and not given:
        return None
    return picker.serve_standing_claim(work, claim, given, standing_claim.look_up_task)


def hand_over_claimed_tasks(handed: HandOver) -> None:
    """Give those who were served what they were given; to be called after the commit."""
    for standing_claim, given in handed:
        standing_claim.may_have_more = len(given) >= min(standing_claim.free, standing_claim.most)
        # The next operation of a group that is written one by one finds that much less room.
        standing_claim.free -= len(given)
        standing_claim.deliver(given)
