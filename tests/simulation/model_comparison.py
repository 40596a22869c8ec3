"""One engine and one plain model side by side: each thing asked is asked of both, and compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum, auto
from itertools import groupby
from typing import Any

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import AdvanceResult, TransitionResult
from holdfast.model.status import Hold
from tests.simulation.plain.advance import derive
from tests.simulation.plain.concurrency import give_on
from tests.simulation.plain.world import WAITING, World
from tests.simulation.store_comparison import compare, read
from tests.simulation.tables import Tables

UNKNOWN_TASK = "t_" + "0" * 20
UNKNOWN_RUN = "r_" + "0" * 20


class Phase(IntEnum):
    """In which order the writer takes the operations of one group."""

    RENEW = auto()
    COMPLETE = auto()
    JUDGE = auto()
    FAIL = auto()
    GO_BACK = auto()
    RELEASE = auto()
    ASK = auto()
    LOSE = auto()
    STEER = auto()
    STEER_RUN = auto()
    ADVANCE = auto()
    CREATE = auto()
    START = auto()
    ACQUIRE_LEASE = auto()
    RENEW_LEASE = auto()
    RELEASE_LEASE = auto()
    SWEEP = auto()
    CLAIM = auto()
    CLAIM_BY_ID = auto()


class Dice:
    """Randomness that gives the next jitter as told, and ids from a seed."""

    def __init__(self) -> None:
        self.jitter = 0.5
        self._source = random.Random(7)  # noqa: S311 - reproducible on purpose

    def random(self) -> float:
        return self.jitter

    def token_bytes(self, length: int, /) -> bytes:
        return self._source.randbytes(length)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One thing asked: how to ask the engine, and what the model says to the engine's reply."""

    name: str
    phase: Phase
    keys: frozenset[str] = frozenset()
    submit: Callable[[], Future[Any]]
    expect: Callable[[Any], object]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    task: str
    fence: int
    token: str


@dataclass(kw_only=True)
class Bench:
    engine: Engine
    clock: ManualClock
    dice: Dice
    tables: Tables
    world: World = field(default_factory=World)
    tasks: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    leases: list[Attempt] = field(default_factory=list)

    def perform(self, asks: Sequence[Ask]) -> None:
        """Ask the engine for all in one group, the model for one after the other."""
        self.world.now = self.clock.now()
        futures = [ask.submit() for ask in asks]
        self.engine.commits.step()
        assert self.engine.commits.step() == 0, "the group was split"
        replies = [_reply(future) for future in futures]
        found = read(self.tables)
        self.world.names = {
            (row["parent_id"], row["parent_epoch"], row["step"], row["item"]): row["id"]
            for row in found["holdfast_task"]
            if row["parent_epoch"] is not None
        }
        asked = sorted(zip(asks, replies, strict=True), key=lambda pair: pair[0].phase)
        for phase, together in groupby(asked, key=lambda pair: pair[0].phase):
            if phase >= Phase.STEER:
                # What follows from all the reports follows before anything is steered.
                derive(self.world)
            if phase > Phase.STEER_RUN:
                give_on(self.world)
            for ask, reply in together:
                self._expect(ask, reply)
        derive(self.world)
        give_on(self.world)
        known = set(self.tasks)
        self.tasks += [each for each in self.world.tasks if each not in known]
        compare(self.world, found)

    def _expect(self, ask: Ask, reply: object) -> None:
        expected = ask.expect(reply)
        assert _shown(reply) == expected, f"{ask.name}: {_shown(reply)}, expected {expected}"
        if ask.phase >= Phase.STEER:
            derive(self.world)

    def task(self, pick: int) -> str:
        return _pick(self.tasks, pick) or UNKNOWN_TASK

    def lone_task(self, pick: int) -> str:
        lone = [each for each in self.tasks if self.run_of(each) is None]
        return _pick(lone, pick) or UNKNOWN_TASK

    def beside(self, task: str, pick: int) -> str:
        """A task that may be needed by another: of the same run, or without one as well."""
        run = self.run_of(task)
        return (
            _pick([each for each in self.tasks if self.run_of(each) == run], pick) or UNKNOWN_TASK
        )

    def asking(self, reason: Hold, pick: int) -> str:
        """Mostly a task that waits for a person, held for that reason or an approval."""
        found = [
            each.id
            for each in self.world.tasks.values()
            if each.status in WAITING
            and (reason in each.holds or (reason is Hold.APPROVAL and each.kind == "approval"))
        ]
        return self.task(pick // 4) if pick % 4 == 0 else _pick(found, pick) or self.task(pick)

    def run_of(self, task: str) -> str | None:
        found = self.world.tasks.get(task)
        return None if found is None else found.run

    def run(self, pick: int) -> str:
        return _pick(self.runs, pick) or UNKNOWN_RUN

    def attempt(self, pick: int, *, live: bool) -> Attempt:
        """An attempt that runs, or any there ever was."""
        alive = [each for each in self.attempts if self._states_by_process(each)]
        stale = Attempt(task=self.task(pick), fence=0, token="1." + "0" * 32)
        return (_pick(alive, pick) if live else None) or _pick(self.attempts, pick) or stale

    def _states_by_process(self, attempt: Attempt) -> bool:
        task = self.world.tasks.get(attempt.task)
        return task is not None and task.status == "running" and task.attempt == attempt.fence


def _pick(items: Sequence[Any], pick: int) -> Any:  # noqa: ANN401 - whatever the items are
    """Newest first, so that small examples are about what has just been made."""
    return items[-1 - pick % len(items)] if items else None


def _reply(future: Future[Any]) -> object:
    error = future.exception(timeout=0)
    return future.result(timeout=0) if error is None else error


def _shown(reply: object) -> object:
    """What the engine said, in the terms of the model."""
    match reply:
        case TransitionResult():
            said = str(reply.reason) if not reply.ok else "repeated" if reply.repeated else "ok"
            return (said, reply.status)
        case AdvanceResult():
            return (reply.advanced, reply.completed)
        case InvalidInput():
            return InvalidInput.__name__
        case Exception():
            return type(reply).__name__
        case list():
            return [_shown(each) for each in reply]
        case _:
            return reply
