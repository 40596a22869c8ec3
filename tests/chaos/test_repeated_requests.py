"""A caller killed after COMMIT never heard, asks again, and nothing is written twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.operation import CreateTasks, Operation, StartRun
from holdfast.model.result import TransitionResult
from holdfast.model.run import CreateResult
from holdfast.randomness import SeededRandomness
from tests.chaos.explorer import Plan, prepared
from tests.chaos.plans import worker_reports
from tests.chaos.plans.worker_reports import fail, start_tasks
from tests.contract.raw_store import dump
from tests.engines import opened
from tests.race.scenarios import CHAIN
from tests.race.worlds import World


@contextmanager
def unheard(url: str, plan: Plan) -> Iterator[tuple[World, tuple[Operation, ...]]]:
    """The world after a group was written whose callers died; asking again changes no row."""
    with prepared(url, plan) as explorer:
        explorer.die(len(explorer.uncrashed().statements))
        operations, later = explorer.operations, explorer.errand.now + 1
    before = dump(url)
    day = ManualClock(later)
    with opened(url, clock=day, randomness=SeededRandomness(8)) as engine:
        yield World(engine=engine, day=day, number=1), operations
        assert dump(url) == before


def ask(world: World, operations: Sequence[Operation]) -> list[object]:
    futures = world.engine.commits.submit_many(operations)
    return [future.result() for future in futures]


def fail_for_good(world: World) -> Sequence[Operation]:
    start_tasks(world, "only", limit=1)
    return [fail(world, "only", retryable=False)]


@pytest.mark.parametrize(
    ("plan", "status"),
    [
        (worker_reports.complete_both_needs_of_a_join, "done"),
        (worker_reports.fail_that_is_tried_again, "queued"),
        (fail_for_good, "failed"),
    ],
)
def test_a_report_made_again_is_answered_as_repeated(
    store_url: str, plan: Plan, status: str
) -> None:
    with unheard(store_url, plan) as (world, operations):
        answers = ask(world, operations)
        assert answers == [TransitionResult(ok=True, repeated=True, status=status)] * len(answers)


def create_with_keys(world: World) -> Sequence[Operation]:
    return [world.create("first", key="first"), world.create("second", key="second")]


def test_tasks_with_keys_created_again_are_the_ones_that_are_there(store_url: str) -> None:
    with unheard(store_url, create_with_keys) as (world, written):
        answers = ask(world, create_with_keys(world))
        ids = [each.tasks[0].id for each in written if isinstance(each, CreateTasks)]
        assert answers == [[CreateResult(id=each, created=False)] for each in ids]
        assert len(ids) == 2


def start_with_a_key(world: World) -> Sequence[Operation]:
    return [world.start_run(*CHAIN, key="order-7", limit=1)]


def test_a_run_with_a_key_started_again_is_the_one_that_is_there(store_url: str) -> None:
    with unheard(store_url, start_with_a_key) as (world, written):
        answers = ask(world, start_with_a_key(world))
        (there,) = [each.run_id for each in written if isinstance(each, StartRun)]
        assert answers == [CreateResult(id=there, created=False)]


def test_tasks_claimed_by_a_dead_worker_go_to_another_after_their_lease(store_url: str) -> None:
    def claim_both(world: World) -> Sequence[Operation]:
        world.task("left", concurrency=world.concurrency(1))
        world.task("right")
        return [world.claim("dead", 2)]

    with prepared(store_url, claim_both) as explorer:
        explorer.die(len(explorer.uncrashed().statements))
    day = ManualClock(explorer.errand.now)
    with opened(store_url, clock=day) as engine:
        assert engine.work.claim("living", agents=["agent-1"], count=2) == []
        day.advance(31)
        engine.recovery.step()
        taken = engine.work.claim("living", agents=["agent-1"], count=2)
        assert [(each.task.title, each.attempt) for each in taken] == [("left", 2), ("right", 2)]
