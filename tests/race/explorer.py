"""Tries every place where one transaction can come between the statements of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from holdfast.clock import ManualClock
from holdfast.engine.core.operation import Claim, Operation, Sweep
from holdfast.engine.engine import Engine
from holdfast.randomness import SeededRandomness
from holdfast.store.database import SqlDirectories, is_postgresql
from tests.race.racers import PATIENCE, RaceClock, Racer, eventually
from tests.race.worlds import World
from tests.stores import OTHERS, examined

Plans = tuple[Sequence[Operation], Sequence[Operation]]
Scenario = Callable[[World], Plans]
Replies = tuple[list[object], list[object]]

_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


class NotSerialisable(AssertionError):
    """Two transactions together did what neither order of them does."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What both were told, and what became of their world."""

    first: tuple[Any, ...]
    second: tuple[Any, ...]
    state: tuple[object, ...]

    def history(self, name: str) -> list[str]:
        """The events of every task that bears a name."""
        events = [event for row in self._rows if row[0] == name for event in row[1:-1]]
        return [event for event in events if event.startswith("task.")]

    @property
    def statuses(self) -> dict[str, str]:
        return {row[0]: row[-1][0] for row in self._rows}

    @property
    def _rows(self) -> list[tuple[Any, ...]]:
        """What is said of tasks and runs: a name, events, needs, and last the facts."""
        rows = [each for each in self.state if isinstance(each, tuple)]
        return [row for row in rows if isinstance(row[-1], tuple)]


@dataclass(kw_only=True)
class Stage:
    """One store: an engine that prepares worlds, two racers in them, and a third beside them."""

    engine: Engine
    day: ManualClock
    first: Racer
    second: Racer
    third: Racer
    worlds: int = 0

    def world(self) -> World:
        self.worlds += 1
        return World(engine=self.engine, day=self.day, number=self.worlds)

    def explore(self, scenario: Scenario) -> list[Outcome]:
        """Check that every interleaving ends as one of the two orders does; give both.

        Afterwards the loop that time drives takes its turn, as it would within a second.
        """
        orders = [self._one_after_the_other(scenario, leader) for leader in (0, 1)]
        for leader in (0, 1):
            place = 0
            while self._interleave(scenario, leader, place, orders):
                place += 1
        diagnosis = examined(self.engine)
        assert diagnosis.ok, str(diagnosis)
        return orders

    def _one_after_the_other(self, scenario: Scenario, leader: int) -> Outcome:
        world = self.world()
        plans = scenario(world)
        replies: Replies = ([], [])
        for each in (leader, 1 - leader):
            replies[each].extend(self.third.perform(plans[each]))
        return _outcome(world, replies)

    def _interleave(
        self, scenario: Scenario, leader: int, place: int, orders: Sequence[Outcome]
    ) -> bool:
        """Stop the leader at `place`, let the other go as far as it can; False behind the end."""
        world = self.world()
        plans = scenario(world)
        ahead, behind = self._racer(leader), self._racer(1 - leader)
        leading = ahead.start_up_to(place, plans[leader])
        if not leading.gate.reached.is_set():
            leading.finish()
            behind.perform(plans[1 - leader])
            return False
        trailing = behind.start(plans[1 - leader])
        try:
            waited = behind.go_as_far_as_possible(trailing)
        finally:
            leading.gate.open()
        replies: Replies = ([], [])
        replies[leader].extend(leading.finish())
        replies[1 - leader].extend(trailing.result(PATIENCE))
        self._ask_again(plans, replies)
        outcome = _outcome(world, replies)
        if outcome not in orders:
            told = f"{behind.name} {'waited' if waited else 'went through'} at statement {place}"
            raise NotSerialisable(f"{told}\n{outcome}\nbut the two orders give\n{orders}")
        return True

    def _ask_again(self, plans: Plans, replies: Replies) -> None:
        """A claim waits for nobody: what it found nothing of, it may find when it asks again."""
        for plan, told in zip(plans, replies, strict=True):
            if not any(told) and all(isinstance(operation, Claim) for operation in plan):
                told[:] = self.third.perform(plan)

    def _racer(self, each: int) -> Racer:
        return (self.first, self.second)[each]


def _outcome(world: World, replies: Replies) -> Outcome:
    world.engine.commits.submit(Sweep()).result(PATIENCE)
    first, second = map(world.describe, replies)
    return Outcome(first=first, second=second, state=world.observe())


@contextmanager
def staged(url: str, files: SqlDirectories | None = None, *, deadlocks: int = 0) -> Iterator[Stage]:
    """A stage on an empty store; at the end PostgreSQL has counted just that many deadlocks.

    The two who race take their SQL from `files`; the third, who shows what is right, does not.
    """
    day = ManualClock()
    with ExitStack() as cleanup:
        engine = Engine(url, clock=RaceClock(day), randomness=SeededRandomness(7))
        cleanup.callback(engine.close)
        engine.commits.start()
        first, second = (Racer(url, name, day, files) for name in ("first", "second"))
        third = Racer(url, "third", day)
        for racer in (first, second, third):
            cleanup.callback(racer.close)
        yield Stage(engine=engine, day=day, first=first, second=second, third=third)
    if is_postgresql(url):
        assert count_deadlocks(url) == deadlocks


def count_deadlocks(url: str) -> int:
    """Ask a database that everyone has left: a session's counts are sure to be in when it ends."""
    with psycopg.connect(url, autocommit=True) as connection:
        if not eventually(partial(_alone, connection)):
            raise TimeoutError("someone has not left the database")
        row = connection.execute(_DEADLOCKS).fetchone()
        return -1 if row is None else int(row[0])


def _alone(connection: psycopg.Connection[tuple[int, ...]]) -> bool:
    return connection.execute(OTHERS).fetchone() is None
