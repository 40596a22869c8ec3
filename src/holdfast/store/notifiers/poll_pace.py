"""The poll pace: the pauses between looks at a SQLite file for commits of other processes."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.store.sqlite.foreign_commits import CommitsSeen

# A commit writes to the log first, and others see it when the disk has it. So after a write the
# looks follow with doubling pauses: a commit is seen late by no more than the time it took itself.
FIRST_GAP = 0.0002
# The shortest pause after a foreign commit was seen: most likely nothing else is being committed.
GAP_AFTER_COMMIT = 0.004
# Shorter pauses are slept, because a wait for a file is counted in whole milliseconds.
SHORTEST_WAIT = 0.001
# The longest pause, for writes that the system did not report; recovery looks as often.
LONGEST_GAP = 0.5
# When one side alone writes again and again, this many of its writes are looked at one by one.
WRITES_WITHOUT_REST = 16
FIRST_REST, LONGEST_REST = 0.001, 0.02
# Where the system reports nothing: after this many looks in vain, pauses are longer by the factor.
VAIN_LOOKS, RARER_FACTOR = 50, 2.5


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Seconds to sleep in any case, and then the seconds to wait for a write at most."""

    rest: float
    wait: float


class PollPace:
    """The pause after each look; `trusted` says that the system reports writes of others."""

    def __init__(self, interval: float, *, trusted: bool) -> None:
        self.trusted = trusted
        self._interval = interval
        self._longest_gap = max(LONGEST_GAP, interval)
        self._gap = self._longest_gap
        self._vain_looks = 0
        self._writes = 0
        self._last_writers = (False, False)
        self._writes_are_foreign = False
        self._transaction_rest = 0.0

    def pause_after(self, seen: CommitsSeen, *, written: bool) -> Pause:
        if seen.writing:
            # This process writes: no other can, and the system reports each page that is written.
            self._transaction_rest = min(2 * self._transaction_rest, LONGEST_REST) or FIRST_GAP
            return Pause(rest=self._transaction_rest, wait=0.0)
        written, self._transaction_rest = written or self._transaction_rest > 0, 0.0
        self._judge_trust(seen, written=written)
        self._count_writes(seen, written=written)
        self._set_gap(seen, written=written)
        gap = self._gap if self.trusted else min(self._gap, self._poll_interval())
        rest = max(self._rest(), gap if gap < SHORTEST_WAIT else 0.0)
        return Pause(rest=rest, wait=max(gap - rest, 0.0))

    def _judge_trust(self, seen: CommitsSeen, *, written: bool) -> None:
        """Trust reports or not: some file systems report no writes that come from elsewhere."""
        if written:
            self._writes_are_foreign = not seen.own
        awaited = written or self._gap < self._longest_gap
        if seen.others and (self._writes_are_foreign or not awaited):
            self.trusted = awaited

    def _count_writes(self, seen: CommitsSeen, *, written: bool) -> None:
        """Count the writes of one side alone; when both sides write in turn, there is no rest."""
        self._vain_looks = 0 if written or seen.others else self._vain_looks + 1
        side = (seen.others, seen.own)
        if all(side) or (any(side) and side != self._last_writers):
            self._last_writers, self._writes = side, 0
        elif any(side) or (written and self._gap >= SHORTEST_WAIT):
            self._writes += 1
        elif self._gap > LONGEST_REST:
            self._writes = 0

    def _set_gap(self, seen: CommitsSeen, *, written: bool) -> None:
        # A commit of many pages is reported many times, and the pauses begin anew only once.
        anew = written and self._gap >= SHORTEST_WAIT
        self._gap = FIRST_GAP if anew else min(2 * self._gap, self._longest_gap)
        if seen.others:
            self._gap = max(self._gap, GAP_AFTER_COMMIT)

    def _rest(self) -> float:
        if self._writes <= WRITES_WITHOUT_REST:
            return 0.0
        # The exponent is bounded: the count grows for as long as one side writes.
        doubled = min(self._writes - WRITES_WITHOUT_REST, 10)
        return min(FIRST_REST * (1 << doubled), LONGEST_REST)

    def _poll_interval(self) -> float:
        # Where nothing has happened for long, the next commit is most likely typed by a person.
        return self._interval * (1 if self._vain_looks < VAIN_LOOKS else RARER_FACTOR)
