"""How soon to look at a SQLite file again for what others have committed."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.store.sqlite.others import Seen

# A commit writes to the log first and is there for others when the disk has it. So after a write
# comes one look after another, each pause twice the last: late by no more than the commit took.
FIRST = 0.0002
# What was written has most likely been seen by now.
SEEN = 0.004
# Shorter pauses are slept through; waiting for a file counts in milliseconds.
LISTEN = 0.001
# For what the system did not tell. As often as recovery looks.
SELDOM = 0.5
# While one side alone writes again and again, so many of its writes are looked at one by one.
FREE = 16
FIRST_REST, LONGEST_REST = 0.001, 0.02
# Where the system tells nothing: after so many looks in vain the next ones are so much rarer.
LOOKS, RARER = 50, 2.5


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Seconds to rest whatever is written, and then to wait for a write at most."""

    rest: float
    wait: float


class Pace:
    """Decides after each look; `trusted` is whether a write of others is told by the system."""

    def __init__(self, interval: float, *, trusted: bool) -> None:
        self.trusted = trusted
        self._interval = interval
        self._seldom = max(SELDOM, interval)
        self._gap = self._seldom
        self._quiet = 0
        self._writes = 0
        self._side = (False, False)
        self._strange = False

    def after(self, seen: Seen, *, written: bool) -> Pause:
        awaited = written or self._gap < self._seldom
        self._quiet = 0 if written or seen.others else self._quiet + 1
        self._gap = FIRST if written else min(2 * self._gap, self._seldom)
        if seen.others or seen.writing:
            self._gap = max(self._gap, SEEN)
        if written:
            self._strange = not seen.own
        if seen.others and (self._strange or not awaited):
            # On some file systems nothing is told of what comes from elsewhere.
            self.trusted = awaited
        self._count(seen, written=written)
        if self._gap < LISTEN:
            return Pause(rest=self._gap, wait=0)
        wait = self._gap if self.trusted else min(self._gap, self._poll())
        rest = min(self._rest(), wait)
        return Pause(rest=rest, wait=wait - rest)

    def _count(self, seen: Seen, *, written: bool) -> None:
        """Count the writes of one side; who answers the other is not kept waiting."""
        side = (seen.others, seen.own)
        if any(side) and side != self._side:
            self._side, self._writes = side, 0
        elif written:
            self._writes += 1
        elif self._gap > LONGEST_REST:
            self._writes = 0

    def _rest(self) -> float:
        if self._writes <= FREE:
            return 0.0
        # No power of a number that grows for as long as somebody writes.
        doubled = min(self._writes - FREE, 10)
        return min(FIRST_REST * (1 << doubled), LONGEST_REST)

    def _poll(self) -> float:
        # Where nothing has happened for long, somebody types the next thing: no hurry.
        return self._interval * (1 if self._quiet < LOOKS else RARER)
