"""Ids of tasks and runs: a prefix, ten characters of milliseconds and ten random ones."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, NewType, Protocol, cast

from holdfast.clock import Clock
from holdfast.randomness import Randomness
from holdfast.threads import fork_generation

RunId = NewType("RunId", str)
TaskId = NewType("TaskId", str)
WorkerName = NewType("WorkerName", str)


class Identified(Protocol):
    """A handle or a record, with the id of a task or run."""

    @property
    def id(self) -> str: ...


AnyId = str | Identified

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# The random bytes for one millisecond, and the milliseconds that one draw serves.
CHANCE_BYTES, DRAWS_AT_ONCE = 7, 64
# The bits of an id's last four characters.
LOW_BITS = 20
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]


class TaskIdSource(Protocol):
    """A source of ids of tasks."""

    def task(self) -> TaskId: ...


class DrawnIds:
    """Ids that were drawn together: a draw costs a lock, and often a call of the system."""

    def __init__(self, drawn: Iterable[TaskId]) -> None:
        self._drawn = iter(drawn)

    def task(self) -> TaskId:
        return next(self._drawn)


class Ids:
    """Hands out ids that grow strictly within this process and are unique across processes."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self.clock = clock
        self._now = clock.now
        self._randomness = randomness
        self._lock = threading.Lock()
        self._millisecond = -1
        self._time = ""
        self._chance = 0
        self._chances: list[int] = []
        self._process = fork_generation()

    def task(self) -> TaskId:
        return TaskId(self._next("t_", 1)[0])

    def tasks(self, count: int) -> list[TaskId]:
        return cast("list[TaskId]", self._next("t_", count))

    def run(self) -> RunId:
        return RunId(self._next("r_", 1)[0])

    def signal(self) -> str:
        return self._next("s_", 1)[0]

    def bulk_change(self) -> str:
        return self._next("b_", 1)[0]

    def draw_task_ids(self, count: int) -> DrawnIds:
        """A source of `count` ids of tasks, for a caller that makes tasks one by one."""
        return DrawnIds(self.tasks(count))

    def _next(self, prefix: str, count: int) -> list[str]:
        with self._lock:
            millisecond = self._now() // 1000
            if millisecond > self._millisecond or fork_generation() != self._process:
                self._begin_millisecond(max(millisecond, self._millisecond))
            first = self._chance + 1
            last = self._chance = self._chance + count
            time = self._time
        if count == 1 or first >> LOW_BITS != last >> LOW_BITS:
            return [prefix + time + _encode(chance) for chance in range(first, last + 1)]
        # The ids differ only in their last four characters.
        head, pairs = prefix + time + _encode(first)[:-4], _PAIRS
        return [
            head + pairs[chance >> 10 & 1023] + pairs[chance & 1023]
            for chance in range(first, last + 1)
        ]

    def _begin_millisecond(self, millisecond: int) -> None:
        # A forked child must not use what its parent drew.
        if not self._chances or fork_generation() != self._process:
            self._chances = self._draw_chances()
        self._process = fork_generation()
        self._millisecond = millisecond
        self._time = _encode(millisecond)
        self._chance = self._chances.pop()

    def _draw_chances(self) -> list[int]:
        """Random numbers for many milliseconds: a call of the system gives up the interpreter."""
        drawn = self._randomness.token_bytes(CHANCE_BYTES * DRAWS_AT_ONCE)
        # 49 of the 50 bits: the ids that follow within one millisecond cannot run out.
        return [
            int.from_bytes(drawn[place : place + CHANCE_BYTES], "big") >> 7
            for place in range(0, len(drawn), CHANCE_BYTES)
        ]


def _encode(value: int) -> str:
    pairs = _PAIRS
    return (
        pairs[value >> 40]
        + pairs[value >> 30 & 1023]
        + pairs[value >> 20 & 1023]
        + pairs[value >> 10 & 1023]
        + pairs[value & 1023]
    )


def first_id(prefix: str, moment: int) -> str:
    """The bound below which all ids with a prefix are that were made before a moment."""
    return prefix + _encode(max(0, moment // 1000))


def id_of(what: Any) -> Any:  # noqa: ANN401 - what is no id is refused where it is read
    """The id of a handle, a task or a run; an id is returned as it is."""
    return what if isinstance(what, str) else getattr(what, "id", what)
