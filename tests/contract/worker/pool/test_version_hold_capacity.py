"""A worker that has the functions of what is on hold lifts as much of it as it can come to."""

from __future__ import annotations

import threading

import pytest

from holdfast import Holdfast
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.worker.pool import version_holds as module
from holdfast.worker.pool.version_holds import AHEAD_SECONDS, LOOK_EVERY, VersionHolds
from holdfast.worker.pool.worker_options import WorkerOptions
from tests.contract.task_states import create
from tests.contract.worker.function_workers import OneFunction
from tests.race.racers import eventually

PATIENCE = 30


def able(engine: Engine, *, lifted: int) -> VersionHolds:
    program = OneFunction(lambda ctx: ctx.attempt)
    return VersionHolds(
        engine, program, WorkerOptions(name="able", concurrency=1), lifted_at_most=lifted
    )


def put_on_hold(engine: Engine, *priorities: int) -> list[str]:
    tasks = [create(engine, step="plan", priority=each) for each in priorities]
    for each in tasks:
        assert engine.tasks.hold(each, "version").ok
    return tasks


def held(engine: Engine, tasks: list[str]) -> list[bool]:
    return [bool(engine.tasks.get(each).holds) for each in tasks]


def test_a_full_worker_lifts_as_many_as_it_runs_at_once_the_first_in_line(
    engine: Engine, clock: ManualClock
) -> None:
    versions, tasks = able(engine, lifted=2), put_on_hold(engine, 0, 9, 5)
    versions.lift_holds(full=True)
    assert held(engine, tasks) == [True, False, True]
    clock.advance(LOOK_EVERY)
    versions.lift_holds(full=True)
    assert held(engine, tasks) == [True, False, True]
    # It has come to that one.
    versions.draw_task_ids.pop(tasks[1])
    clock.advance(LOOK_EVERY)
    versions.lift_holds(full=True)
    assert held(engine, tasks) == [True, False, False]
    # Somebody else may have come to that one, of which it hears nothing.
    clock.advance(AHEAD_SECONDS)
    versions.lift_holds(full=True)
    assert held(engine, tasks) == [False, False, False]


def test_a_worker_lifts_the_first_in_line_and_the_others_when_it_has_room_again(
    engine: Engine, clock: ManualClock
) -> None:
    versions, tasks = able(engine, lifted=2), put_on_hold(engine, 0, 0, 9, 9, 0)
    versions.lift_holds()
    assert held(engine, tasks) == [True, True, False, False, True]
    assert versions.has_more
    versions.lift_holds(full=True)
    assert held(engine, tasks) == [True, True, False, False, True]
    # Without waiting for its next look, because it knows of them.
    versions.lift_holds()
    assert held(engine, tasks) == [False, False, False, False, True]
    versions.lift_holds()
    assert held(engine, tasks) == [False] * 5
    assert not versions.has_more
    (late,) = put_on_hold(engine, 0)
    versions.lift_holds()
    assert held(engine, [late]) == [True]
    clock.advance(LOOK_EVERY)
    versions.lift_holds()
    assert held(engine, [late]) == [False]


def test_tasks_that_only_a_full_worker_can_run_are_not_taken_and_held_by_another_without_end(
    hf: Holdfast, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the other remembers to pass by."""
    monkeypatch.setattr(module, "REMEMBERED", 4)
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    began, go_on = threading.Event(), threading.Event()

    @hf.task
    def busy() -> None:
        began.set()
        assert go_on.wait(PATIENCE)

    @hf.task
    def only_here() -> str:
        return "made"

    with Holdfast(store_url) as other, hf.worker(name="able", concurrency=1):

        @other.task
        def marker() -> None: ...

        busy.enqueue()
        assert began.wait(PATIENCE)
        with other.worker(name="unable", concurrency=1):
            handles = [only_here.enqueue() for _ in range(12)]
            assert eventually(lambda: all(hf.tasks.get(each.id).attempt for each in handles))
            for _ in range(3):
                # Each brings both workers to look at what there is.
                marker.enqueue().result(PATIENCE)
            # Each once, and what the full worker lifts to take it next, once more.
            assert sum(hf.tasks.get(each.id).attempt for each in handles) <= 12 + 1
            go_on.set()
            assert [each.result(PATIENCE) for each in handles] == ["made"] * 12
