"""Positions: how far a reader of a growing table has come, with the holes it has passed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Horizon:
    """The numbers of the oldest open transaction and of the next transaction, at one snapshot."""

    oldest: int
    next: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Hole:
    """Numbers that were missing when later ones were read: they come late, or not at all.

    The transactions that were given these numbers are older than `until`.
    """

    low: int
    high: int
    until: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Everything up to `passed` was read, except numbers in the holes, which may come late."""

    passed: int = 0
    holes: tuple[Hole, ...] = ()

    @property
    def floor(self) -> int:
        """A number below all numbers that are read from here on."""
        return min([self.passed, *(hole.low - 1 for hole in self.holes)])

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(hole.low, hole.high) for hole in self.holes]

    def move(self, found: Sequence[int], horizon: Horizon) -> Position:
        """The position after the numbers `found`, which one snapshot showed in their order."""
        newer = [number for number in found if number > self.passed]
        late = [number for number in found if number <= self.passed]
        left = [part for hole in self.holes for part in _split(hole, late)]
        left += _gaps(self.passed, newer, horizon.next)
        # After a restore the server may count transactions anew, so no bound is above its count.
        known = [replace(hole, until=min(hole.until, horizon.next)) for hole in left]
        return Position(
            passed=newer[-1] if newer else self.passed,
            holes=tuple(hole for hole in known if hole.until > horizon.oldest),
        )

    def write_holes(self) -> str:
        return json.dumps([[hole.low, hole.high, hole.until] for hole in self.holes])


def read_position(passed: int, holes: str) -> Position:
    """A position from the store, without the holes after `passed`, which a rewound reader has."""
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
