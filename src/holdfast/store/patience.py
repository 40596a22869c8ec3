"""Bounded, jittered, growing waits for a database that is busy or away."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.randomness import Randomness


class Contended(Exception):
    """Another process was first; raised inside a transaction to begin it again."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Waits start near `first` seconds, double up to `longest`, and end `total` after the start."""

    first: float
    longest: float
    total: float


class Patience:
    """One stretch of waiting: made when trouble starts, thrown away when it is over."""

    def __init__(self, pace: Pace, clock: Clock, randomness: Randomness) -> None:
        self._pace = pace
        self._clock = clock
        self._randomness = randomness
        self._end = clock.monotonic() + pace.total
        self._next = pace.first

    def wait(self) -> bool:
        """Sleep once; False, without sleeping, when the patience is used up."""
        left = self._end - self._clock.monotonic()
        if left <= 0:
            return False
        self._clock.sleep(min(left, self._next * (0.5 + self._randomness.random())))
        self._next = min(self._pace.longest, self._next * 2)
        return True
