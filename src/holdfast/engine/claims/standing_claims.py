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
from holdfast.engine.core.operation import Claim, Look, Pull
from holdfast.engine.core.unit_of_work import Group, Offer
from holdfast.store.database import Contended, Row

log = logging.getLogger("holdfast.engine")
MOST = 1_000


@dataclass(kw_only=True, eq=False)
class Taker:
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
    most: int = MOST
    # The same one again gets the same tasks.
    request: str | None = None
    # How the rest of a task is read when it is asked for; without it all of it is given at once.
    look: Look | None = None
    hungry: bool = True
    free: int = 0

    def offer(self) -> Offer | None:
        """The room for what is unblocked: of one who takes what one agent does, in turn."""
        if self.free <= 0 or len(self.agents) != 1 or self.bare:
            return None
        if self.request is not None or self.passed():
            return None
        (agent,) = self.agents
        # Not only so many as it claims at once: each takes the place of one that was reported.
        room = min(self.free, MOST)
        return Offer(
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
            look=self.look,
        )


Handed = list[tuple[Taker, Claimed]]
NOTHING = Claimed(secret=b"", rows=[], given={}, runs={}, around={})


class Takers:
    def __init__(self) -> None:
        # Replaced, never changed, so that the writer can walk it without the lock.
        self._takers: tuple[Taker, ...] = ()
        self._lock = threading.Lock()
        self._failing = False
        # Whose room was offered to what a group unblocks, until that group has been served.
        self._offered: Taker | None = None

    def add(self, taker: Taker) -> Callable[[], None]:
        """Serve one more from now on; returns the way out."""
        with self._lock:
            self._takers = (*self._takers, taker)

        def remove() -> None:
            with self._lock:
                self._takers = tuple(each for each in self._takers if each is not taker)

        return remove

    def look(self) -> None:
        """Note the room of each: a place is free in the group of the report that gives it up."""
        for taker in self._takers:
            try:
                taker.free = taker.room()
            except Exception:
                taker.free = 0
                log.exception("%s cannot tell how many tasks it takes", taker.worker)

    def offer(self) -> Offer | None:
        """Offer the room of the first who has any; to a group that is written again, none."""
        failed, self._offered = self._offered is not None, None
        if failed:
            return None
        for taker in self._takers:
            # Who cannot tell what it passes by is found out where it claims.
            with suppress(Exception):
                if (offer := taker.offer()) is not None:
                    self._offered = taker
                    return offer
        return None

    def serve(self, group: Group, pulls: Collection[Pull]) -> Handed:
        """Give what was started for it to who has offered room for it, and claim.

        That is for whoever asked, and for the others when this group may have work for them.

        When that fails the group is written again, and then for those alone who asked: nobody
        else's operation is to fail for it.
        """
        asked = {pull.taker for pull in pulls}
        group.served = not self._failing
        hopeful = self._hopeful(group) if group.served else []
        started = group.offer.given if group.offer else []
        if not asked and not hopeful and not started:
            self._offered = None
            return []
        self._failing = True
        try:
            handed = self._claim(group, {*asked, *hopeful}, started)
        except Contended:
            raise
        except Exception as error:
            if not hopeful and not started:
                raise
            log.warning("the group is written again without its standing claims: %r", error)
            raise Contended(str(error)) from error
        self._failing, self._offered = False, None
        return handed

    def _claim(self, group: Group, chosen: AbstractSet[object], started: list[Row]) -> Handed:
        handed: Handed = []
        # Where one of a kind found too little, the others of it would find nothing.
        sated: set[object] = set()
        for taker in self._all():
            rows = started if taker is self._offered else []
            if taker not in chosen and not rows:
                continue
            kind = (taker.agents, taker.tags, taker.passed(), taker.bare)
            wants = taker in chosen and kind not in sated
            given = _take(group, taker, rows, wants=wants)
            if given is not None:
                handed.append((taker, given))
                if wants and not given.repeated and len(given) < min(taker.free, taker.most):
                    sated.add(kind)
            elif not wants:
                handed.append((taker, NOTHING))
        return handed

    def _all(self) -> Iterator[Taker]:
        """Those that are served, and who has left since its room was offered."""
        takers = self._takers
        yield from takers
        if self._offered is not None and self._offered not in takers:
            yield self._offered

    def _hopeful(self, group: Group) -> list[Taker]:
        ready = group.ready or group.unsure
        return [each for each in self._takers if each.hungry or ready]


def _take(group: Group, taker: Taker, given: list[Row], *, wants: bool) -> Claimed | None:
    claim = taker.claim(len(given)) if wants else None
    if wants:
        # Unless a commit says otherwise: without room it was not offered what may be there.
        taker.hungry = True
    if claim is None and not given:
        return None
    return picker.serve(group, claim, given, taker.look)


def hand_over(handed: Handed) -> None:
    """Give those who were served what they were given; to be called after the commit."""
    for taker, given in handed:
        taker.hungry = len(given) >= min(taker.free, taker.most)
        # The next operation of a group that is written one by one finds that much less room.
        taker.free -= len(given)
        taker.deliver(given)
