"""Consequences are written with what brings them about, and advance finds nothing to do."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.operation import Sweep
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.contract.task_states import break_for_good, create, finish, start, take

SIDE_BY_SIDE = Workflow.define("pair", (Step(id="left"), Step(id="right")))
Leave = Callable[[Engine, ManualClock, Assignment], object]


def report_failure(engine: Engine, _: ManualClock, held: Assignment) -> object:
    return engine.work.fail(held.task.id, held.token, "once more")


def give_back(engine: Engine, _: ManualClock, held: Assignment) -> object:
    return engine.work.release(held.task.id, held.token)


def vanish(engine: Engine, clock: ManualClock, _: Assignment) -> object:
    clock.advance(31)
    return engine.work.recover()


@pytest.mark.parametrize("leave", [report_failure, give_back, vanish])
def test_a_failing_run_ends_when_the_last_running_task_goes_back_to_the_queue(
    engine: Engine, clock: ManualClock, leave: Leave
) -> None:
    run = engine.runs.start(NewRun(workflow=SIDE_BY_SIDE)).id
    left, right = (task.id for task in engine.runs.tasks(run))
    held = take(engine, right)
    break_for_good(engine, left)
    assert engine.runs.get(run).status == "running"
    leave(engine, clock, held)
    assert engine.tasks.get(right).status is Status.QUEUED
    assert engine.runs.get(run).status == "failed"


RETRY = RetryPolicy(max_attempts=2, max_lost=2, backoff=1, backoff_max=2)


class Play:
    """A seeded sequence of operations on a few small runs."""

    def __init__(self, engine: Engine, clock: ManualClock, seed: int) -> None:
        self.engine = engine
        self.clock = clock
        self.dice = random.Random(seed)  # noqa: S311 - a seeded game, no secret
        self.held: list[Assignment] = []
        self.runs = [self._start(seed) for _ in range(self.dice.randint(1, 2))]

    def _start(self, seed: int) -> str:
        dice = self.dice
        steps = tuple(
            Step(
                id=f"s{place}",
                retry=RETRY,
                needs=tuple({f"s{dice.randrange(place)}" for _ in range(dice.randint(0, 2))})
                if place
                else (),
                concurrency=dice.choice([None, None, Concurrency(key="k")]),
            )
            for place in range(dice.randint(2, 4))
        )
        limit = dice.choice([None, Concurrency(key=f"r{seed}")])
        workflow = Workflow.define("w", steps, concurrency=limit)
        return self.engine.runs.start(NewRun(workflow=workflow)).id

    def moves(self) -> Iterator[Callable[[], object]]:
        engine, dice = self.engine, self.dice
        while True:
            run = dice.choice(self.runs)
            task = dice.choice(engine.runs.tasks(run)).id
            held = dice.choice(self.held) if self.held else None
            moves: list[Callable[[], object]] = [self._claim] * 4
            if held is not None:
                moves += [*self._reports(held)] * 2
            tasks, runs = engine.tasks, engine.runs
            of_task = (tasks.cancel, tasks.reset, tasks.retry, tasks.reopen, tasks.run_now)
            moves += [partial(verb, task) for verb in (*of_task, tasks.hold, tasks.unhold)]
            moves += [partial(verb, run) for verb in (runs.cancel, runs.retry)]
            moves += [partial(verb, run) for verb in (runs.pause, runs.resume)]
            moves += [self._lose, self._sweep]
            yield dice.choice(moves)

    def _claim(self) -> None:
        self.held += self.engine.work.claim("worker", count=self.dice.randint(1, 3))

    def _reports(self, held: Assignment) -> list[Callable[[], Any]]:
        work, name = self.engine.work, (held.task.id, held.token)
        again = self.dice.random() < 0.5
        return [
            lambda: work.complete(*name, 1),
            lambda: work.fail(*name, "x", retryable=again),
            lambda: work.release(*name),
        ]

    def _lose(self) -> None:
        self.clock.advance(40)
        self.engine.work.recover()

    def _sweep(self) -> None:
        self.clock.advance(3)
        self.engine.commits.submit(Sweep()).result()


def test_after_any_operation_advance_finds_nothing_to_do(
    engine: Engine, clock: ManualClock
) -> None:
    for seed in range(40):
        play = Play(engine, clock, seed)
        for move, _ in zip(play.moves(), range(25), strict=False):
            move()
            for run in play.runs:
                before = engine.runs.events(run)
                engine.runs.advance(run)
                assert engine.runs.events(run) == before, f"seed {seed}"
        for run in play.runs:
            engine.runs.cancel(run)


def test_nothing_is_created_below_what_has_ended_or_is_part_of_a_run(engine: Engine) -> None:
    ended = create(engine)
    finish(engine, ended)
    for parent in (ended, start(engine).steps["plan"]):
        with pytest.raises(InvalidInput, match="parent"):
            engine.tasks.create(NewTask(title="child", parent=parent))


def test_the_same_key_gives_the_existing_child_after_its_parent_has_ended(engine: Engine) -> None:
    parent = create(engine)
    child = NewTask(title="child", parent=parent, key="once")
    first = engine.tasks.create(child)
    finish(engine, parent)
    assert engine.tasks.create(child).id == first.id


def test_a_later_limit_replaces_an_earlier_one(engine: Engine, clock: ManualClock) -> None:
    task = create(engine)
    assert engine.tasks.hold(task, "limit", until=clock.now() + 10_000_000).ok
    assert engine.tasks.hold(task, "limit", until=clock.now() + 3_600_000_000).ok
    clock.advance(11)
    engine.commits.submit(Sweep()).result()
    assert engine.work.claim("worker") == []
    clock.advance(3_600)
    engine.commits.submit(Sweep()).result()
    assert len(engine.work.claim("worker")) == 1


def test_a_limit_may_be_given_its_time_later(engine: Engine, clock: ManualClock) -> None:
    task = create(engine)
    assert engine.tasks.hold(task, "limit").ok
    until = clock.now() + 1_000_000
    assert engine.tasks.hold(task, "limit", until=until).ok
    assert engine.tasks.hold(task, "limit", until=until).repeated
    clock.advance(2)
    engine.commits.submit(Sweep()).result()
    assert len(engine.work.claim("worker")) == 1


def test_a_wait_for_a_task_ends_with_not_found_when_the_task_is_deleted(engine: Engine) -> None:
    task = create(engine, enqueue=False)
    before = engine.outcomes.wait(task)
    assert engine.tasks.delete(task).ok
    with pytest.raises(NotFound):
        before.result(30)
    with pytest.raises(NotFound):
        engine.outcomes.wait(task).result(30)


def test_no_backoff_stays_none_however_often_it_fails(engine: Engine) -> None:
    retry = RetryPolicy(max_attempts=60, backoff=0, backoff_max=60)
    task = create(engine, retry=retry)
    for _ in range(50):
        (held,) = engine.work.claim("worker")
        assert engine.work.fail(task, held.token, "again").ok
