"""Asks a store for anything at all, drawn from a seed: the same seed, the same things, in order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.result import TransitionResult
from holdfast.model.run import CreateResult
from holdfast.model.task import Assignment, NamedLease
from holdfast.model.workflow.graph import Concurrency
from tests.simulation.model_comparison import UNKNOWN_RUN, UNKNOWN_TASK

T = TypeVar("T")
Submit = Callable[[], Future[Any]]
LEASES = (1, 5, 20)
FORGED = "1." + "0" * 32


Kind = Callable[["Player"], Submit]


@dataclass(kw_only=True)
class Player:
    """One store under way, and what is known of it to whoever asks."""

    engine: Engine
    clock: ManualClock
    draw: random.Random
    tasks: list[str] = field(default_factory=list)
    lone: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    attempts: list[tuple[str, str]] = field(default_factory=list)
    leases: list[tuple[str, str]] = field(default_factory=list)

    def play(self, kinds: Sequence[Kind]) -> list[object]:
        """Let time pass, and ask for some things in one group; what each was told."""
        self.clock.advance(self.draw.choice((0.001, 0.5, 3)))
        told = [self._ask(kind(self)) for kind in kinds]
        while self.engine.commits.step():
            pass
        return [self._heard(reply) for reply in told]

    def _ask(self, submit: Submit) -> Future[Any]:
        try:
            return submit()
        except HoldfastError as error:
            refused: Future[Any] = Future()
            refused.set_exception(error)
            return refused

    def _heard(self, reply: Future[Any]) -> object:
        error = reply.exception(timeout=0)
        if error is not None:
            return f"{type(error).__name__}: {error}"
        return self._learn(reply.result(timeout=0))

    def _learn(self, reply: object) -> object:
        """Remember ids and tokens; a token differs from store to store and is not told on."""
        match reply:
            case list():
                return [self._learn(each) for each in reply]
            case CreateResult(id=identifier, created=True):
                if identifier.startswith("r_"):
                    self.runs.append(identifier)
                    self.tasks += [task.id for task in self.engine.runs.tasks(identifier)]
                else:
                    self.tasks.append(identifier)
                    self.lone.append(identifier)
            case Assignment():
                self.attempts.append((reply.task.id, reply.token))
                return replace(reply, token="")
            case NamedLease():
                self.leases.append((reply.key, reply.token))
                return replace(reply, token="")
        return reply

    def look(self) -> tuple[TransitionResult, str]:
        """Ask what changes nothing: the guard of an attempt, and why a task is not running."""
        task, token = self.attempt()
        try:
            explained = str(self.engine.why(self.task()))
        except NotFound as error:
            explained = str(error)
        return self.engine.work.guard(task, token), explained

    def pick(self, items: Sequence[T], default: T) -> T:
        """One of some items, rather a new one than an old one."""
        if not items:
            return default
        return items[-1 - min(int(self.draw.expovariate(0.3)), len(items) - 1)]

    def task(self) -> str:
        return self.pick(self.tasks, UNKNOWN_TASK)

    def lone_task(self) -> str:
        return self.pick(self.lone, UNKNOWN_TASK)

    def run(self) -> str:
        return self.pick(self.runs, UNKNOWN_RUN)

    def attempt(self) -> tuple[str, str]:
        return self.pick(self.attempts, (UNKNOWN_TASK, FORGED))

    def lease(self) -> tuple[str, str]:
        return self.pick(self.leases, ("door", FORGED))

    def later(self) -> int | None:
        after = self.draw.choice((None, 1, 4))
        return None if after is None else self.clock.now() + after * MICROSECONDS

    def fields(self) -> dict[str, Any]:
        """The fields of a new task."""
        draw = self.draw
        return {
            "title": draw.choice(("first", "second")),
            "agent": draw.choice(("default", "reviewer")),
            "key": draw.choice((None, None, None, f"key-{draw.randrange(9)}")),
            "priority": draw.randint(0, 2),
            "position": draw.randint(0, 1),
            "tags": draw.choice(((), (), ("gpu",))),
            "payload": {"given": draw.random()},
            "concurrency": draw.choice((None, None, Concurrency(key="wide", limit=2))),
            "enqueue": draw.random() < 0.8,
            "scheduled_for": draw.choice((None, None, self.later())),
            "needs": tuple(self.lone_task() for _ in range(draw.choice((0, 0, 1, 2)))),
            "parent": draw.choice((None, None, None, self.lone_task())),
        }
