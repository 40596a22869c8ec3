"""How far a reader of a growing table has come, whatever is committed late before that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Horizon:
    """What a snapshot tells: the oldest transaction still under way, and the next there will be."""

    oldest: int
    next: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Hole:
    """Numbers that were missing when later ones were there: they come late, or not at all.

    Whoever was given one of them is a transaction older than `until`.
    """

    low: int
    high: int
    until: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Everything up to `passed` was read, but for what comes late in the holes."""

    passed: int = 0
    holes: tuple[Hole, ...] = ()

    @property
    def floor(self) -> int:
        """Whatever is read from here on has a greater number."""
        return min([self.passed, *(hole.low - 1 for hole in self.holes)])

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(hole.low, hole.high) for hole in self.holes]

    def move(self, found: Sequence[int], horizon: Horizon) -> Position:
        """The position after the numbers `found`, in order, which one snapshot showed from here."""
        newer = [number for number in found if number > self.passed]
        late = [number for number in found if number <= self.passed]
        left = [part for hole in self.holes for part in _split(hole, late)]
        left += _gaps(self.passed, newer, horizon.next)
        # A hole noticed on a server whose transactions have another count is noticed anew.
        known = [replace(hole, until=min(hole.until, horizon.next)) for hole in left]
        return Position(
            passed=newer[-1] if newer else self.passed,
            holes=tuple(hole for hole in known if hole.until > horizon.oldest),
        )

    def write_holes(self) -> str:
        return json.dumps([[hole.low, hole.high, hole.until] for hole in self.holes])


def read_position(passed: int, holes: str) -> Position:
    """A position as it is kept; of a reader that was rewound, without what it comes to anyway."""
    told = json.loads(holes)
    return Position(
        passed=passed,
        holes=tuple(
            Hole(low=low, high=min(high, passed), until=until)
            for low, high, until in told
            if low <= passed
        ),
    )


def _gaps(after: int, numbers: Iterable[int], until: int) -> Iterator[Hole]:
    for number in numbers:
        if number > after + 1:
            yield Hole(low=after + 1, high=number - 1, until=until)
        after = number


def _split(hole: Hole, come: Iterable[int]) -> Iterator[Hole]:
    low = hole.low
    for number in come:
        if hole.low <= number <= hole.high:
            if number > low:
                yield replace(hole, low=low, high=number - 1)
            low = number + 1
    if low <= hole.high:
        yield replace(hole, low=low)
