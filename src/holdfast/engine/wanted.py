"""The functions that tasks on hold `version` want, looked through a page of tasks at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.store.database import Row

WANTED_AT_ONCE = 5_000

Function = tuple[str | None, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The functions (workflow, step) of the tasks after one id up to another, each once.

    `following` is where the next page begins, which is the first one when there is no other.
    """

    functions: tuple[Function, ...]
    after: str
    until: str
    following: str


def read_wanted(rows: Sequence[Row], *, after: str, count: int) -> Wanted:
    until = max((row["last"] for row in rows), default=after)
    whole = sum(row["tasks"] for row in rows) < count
    return Wanted(
        functions=tuple((row["workflow"], row["step"]) for row in rows if row["open"]),
        after=after,
        until=until,
        following="" if whole else until,
    )
