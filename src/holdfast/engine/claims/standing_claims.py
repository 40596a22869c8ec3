"""Standing claims: workers of this process get ready tasks in the commit that makes them ready."""

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
from holdfast.model.worker import EVERY_AGENT
from holdfast.store.database import Contended, Row

log = logging.getLogger("holdfast.engine")
MOST_AT_ONCE = 1_000


@dataclass(kw_only=True, eq=False)
class StandingClaim:
    """A claim that a worker leaves with the writer, which serves it after every group."""

    worker: str
    agents: tuple[str, ...]
    tags: str
    lease: int
    # How many more tasks the worker takes; called when the writer takes the operations of a group.
    room: Callable[[], int]
    # The tasks that are left to other workers.
    passed: Callable[[], tuple[str, ...]]
    # Called after the commit in the thread that wrote: it must neither wait nor fail.
    deliver: Callable[[Claimed], None]
    # Whether tasks are taken that name no function, and steps whose file names no program.
    bare: bool = True
    # Without `bare`: the agents of which such tasks are taken all the same.
    equipped: tuple[str, ...] = ()
    # The most tasks that it takes with one commit.
    most: int = MOST_AT_ONCE
    # A claim that repeats a request gets the same tasks again.
    request: str | None = None
    # Reads the whole row of a task later; without it the whole row is read with the claim.
    look_up_task: TaskLookup | None = None
    # Whether more tasks may be ready than the claim was given.
    may_have_more: bool = True
    # The room that `room` returned for the group under way.
    free: int = 0

    def direct_start_room(self) -> DirectStartRoom | None:
        """The room for a direct start; None unless it takes all tasks of one agent in order."""
        if self.free <= 0 or len(self.agents) != 1 or EVERY_AGENT in self.agents:
            return None
        if self.bare or self.equipped:
            return None
        if self.request is not None or self.passed():
            return None
        (agent,) = self.agents
        # More than `most` are allowed: each started task takes the place of a reported one.
        room = min(self.free, MOST_AT_ONCE)
        return DirectStartRoom(
            worker=self.worker,
            agent=agent,
            tags=self.tags,
            lease=self.lease,
            room=room,
        )

    def claim(self, given: int) -> Claim | None:
        """The claim for the room that is left beside `given` tasks; None if none is left."""
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
            equipped=self.equipped,
            request=self.request,
            look_up_task=self.look_up_task,
        )


HandOver = list[tuple[StandingClaim, Claimed]]
NOTHING_CLAIMED = Claimed(secret=b"", rows=[], given={}, runs={}, around={})


class StandingClaims:
    """The standing claims of this process."""

    def __init__(self) -> None:
        # The tuple is replaced and never changed, so that the writer can read it without the lock.
        self._standing_claims: tuple[StandingClaim, ...] = ()
        self._lock = threading.Lock()
        # Whether the last try to serve failed: then the group is written again without them.
        self._failing = False
        # The claim whose room was given to the direct start, until its group has been served.
        self._direct_start_claim: StandingClaim | None = None

    def add(self, standing_claim: StandingClaim) -> Callable[[], None]:
        """Serve a standing claim from now on; returns a function that removes it."""
        with self._lock:
            self._standing_claims = (*self._standing_claims, standing_claim)

        def remove() -> None:
            with self._lock:
                self._standing_claims = tuple(
                    each for each in self._standing_claims if each is not standing_claim
                )

        return remove

    def note_room(self) -> None:
        """Note the room of each claim; a report makes room in the very group that holds it."""
        for standing_claim in self._standing_claims:
            try:
                standing_claim.free = standing_claim.room()
            except Exception:
                standing_claim.free = 0
                log.exception("%s cannot tell how many tasks it takes", standing_claim.worker)

    def choose_direct_start(self) -> DirectStartRoom | None:
        """Choose the first claim with room for a direct start; none if a group is written again."""
        failed, self._direct_start_claim = self._direct_start_claim is not None, None
        if failed:
            return None
        for standing_claim in self._standing_claims:
            # A claim whose `passed` fails is reported where it is served.
            with suppress(Exception):
                if (room := standing_claim.direct_start_room()) is not None:
                    self._direct_start_claim = standing_claim
                    return room
        return None

    def send_ahead(self, work: UnitOfWork) -> None:
        """Send the claim that is served if nothing becomes ready or is started directly."""
        if self._failing:
            return
        expected = [each for each in self._standing_claims if each.may_have_more]
        if len(expected) != 1 or expected[0].request is not None:
            return
        claim: Claim | None = None
        # A claim whose `passed` fails is reported where it is served.
        with suppress(Exception):
            claim = expected[0].claim(0)
        if claim is not None:
            picker.send_plain_claim(work, claim)

    def serve(self, work: UnitOfWork, pulls: Collection[Pull]) -> HandOver:
        """Claim for the standing claims, and give directly started tasks to the chosen claim.

        Claims with a pull are served always, and the others if this group may have tasks for them.

        If serving fails, the group is written again, and then only claims with a pull are served:
        the operations of others must not fail because of a standing claim.
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
        # If a claim of one kind found too few tasks, the other claims of that kind would find none.
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
                standing_claim.equipped,
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
        """All claims, and the claim of the direct start even if it was removed meanwhile."""
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
        # Until the commit says otherwise: tasks may be there for which the claim has no room.
        standing_claim.may_have_more = True
    if claim is None and not given:
        return None
    return picker.serve_standing_claim(work, claim, given, standing_claim.look_up_task)


def hand_over_claimed_tasks(handed: HandOver) -> None:
    """Deliver the claimed tasks to their workers; called after the commit."""
    for standing_claim, given in handed:
        standing_claim.may_have_more = len(given) >= min(standing_claim.free, standing_claim.most)
        # When a group is written operation by operation, the next one finds less room.
        standing_claim.free -= len(given)
        standing_claim.deliver(given)
