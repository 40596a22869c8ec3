"""Attempt faults: workers that die, and workers that stand still until their lease is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from holdfast.api.options import refuse_unknown
from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment
from holdfast.testing.targets import Target


class FaultPoint(StrEnum):
    """A point of an attempt at which its worker may die or stand still."""

    BEGIN = "at its beginning"
    BEFORE_EFFECT = "before an effect"
    BEFORE_REMEMBERING = "before an effect is remembered"
    AFTER_EFFECT = "after an effect"
    BEFORE_REPORT = "before its report"


class WorkerDied(BaseException):
    """Leaves a step whose worker dies here: nothing that it does from now on reaches the store.

    It is a `BaseException`, so that no `except Exception` of the step catches it.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A fault at one point of an attempt; an `effect` is meant by its name, or by its number."""

    target: Target
    attempt: int
    point: FaultPoint
    effect: int | str | None = None
    dies: bool = True

    def matches(self, assignment: Assignment, function: Callable[..., object] | None) -> bool:
        return self.attempt == assignment.attempt and self.target.means(
            function, assignment.step, assignment.name
        )

    def is_at(self, point: FaultPoint, name: object, number: int) -> bool:
        return self.point is point and (self.effect is None or self.effect in (name, number))

    def __str__(self) -> str:
        what = "dies" if self.dies else "loses its lease"
        where = self.point if self.effect is None else f"{self.point} {self.effect!r}"
        return f"attempt {self.attempt} of {self.target} {what} {where}"


class FaultPlace(TypedDict, total=False):
    """The place of a fault as a test names it: one of these, else before the report."""

    before_effect: int | str
    before_remembering: int | str
    after_effect: int | str
    at_beginning: bool


_POINTS = {
    "before_effect": FaultPoint.BEFORE_EFFECT,
    "before_remembering": FaultPoint.BEFORE_REMEMBERING,
    "after_effect": FaultPoint.AFTER_EFFECT,
    "at_beginning": FaultPoint.BEGIN,
}


def read_place(place: FaultPlace) -> tuple[FaultPoint, int | str | None]:
    """The point of a fault, and the effect that is meant."""
    refuse_unknown("place of a fault", place, _POINTS)
    if len(place) > 1:
        raise InvalidInput("fault", f"happens in one place, not in {' and '.join(place)}")
    for name, given in place.items():
        point = _POINTS[name]
        if point is FaultPoint.BEGIN:
            return point, None
        if isinstance(given, bool) or not isinstance(given, int | str) or given == 0:
            reason = f"{given!r} is no effect; give its name, or its number from 1"
            raise InvalidInput(name, reason)
        return point, given
    return FaultPoint.BEFORE_REPORT, None
