"""How soon to look at a SQLite file again for what others have committed."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.store.sqlite.foreign_commits import Seen

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
        self._held = 0.0

    def after(self, seen: Seen, *, written: bool) -> Pause:
        if seen.writing:
            # Nobody else can write meanwhile, and each page of its own is told.
            self._held = min(2 * self._held, LONGEST_REST) or FIRST
            return Pause(rest=self._held, wait=0.0)
        written, self._held = written or self._held > 0, 0.0
        self._judge(seen, written=written)
        self._count(seen, written=written)
        self._set_gap(seen, written=written)
        gap = self._gap if self.trusted else min(self._gap, self._poll())
        rest = max(self._rest(), gap if gap < LISTEN else 0.0)
        return Pause(rest=rest, wait=max(gap - rest, 0.0))

    def _judge(self, seen: Seen, *, written: bool) -> None:
        """On some file systems nothing is told of what comes from elsewhere."""
        if written:
            self._strange = not seen.own
        awaited = written or self._gap < self._seldom
        if seen.others and (self._strange or not awaited):
            self.trusted = awaited

    def _count(self, seen: Seen, *, written: bool) -> None:
        """Count the writes of one side; who answers the other is not kept waiting."""
        self._quiet = 0 if written or seen.others else self._quiet + 1
        side = (seen.others, seen.own)
        if all(side) or (any(side) and side != self._side):
            self._side, self._writes = side, 0
        elif any(side) or (written and self._gap >= LISTEN):
            self._writes += 1
        elif self._gap > LONGEST_REST:
            self._writes = 0

    def _set_gap(self, seen: Seen, *, written: bool) -> None:
        # A commit of many pages is told many times, and is still the same.
        anew = written and self._gap >= LISTEN
        self._gap = FIRST if anew else min(2 * self._gap, self._seldom)
        if seen.others:
            self._gap = max(self._gap, SEEN)

    def _rest(self) -> float:
        if self._writes <= FREE:
            return 0.0
        # No power of a number that grows for as long as somebody writes.
        doubled = min(self._writes - FREE, 10)
        return min(FIRST_REST * (1 << doubled), LONGEST_REST)

    def _poll(self) -> float:
        # Where nothing has happened for long, somebody types the next thing: no hurry.
        return self._interval * (1 if self._quiet < LOOKS else RARER)
