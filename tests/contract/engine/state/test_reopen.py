"""Re-open, retry from a step, and reset: what comes back with a task, in one transaction."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal
from holdfast.model.status import Status
from tests.contract.raw_store import dump
from tests.contract.task_states import FORK, StartedRun, bring, create, finish, start


def marks(run: StartedRun) -> dict[str, tuple[int, int]]:
    return {str(t.step): (t.generation, t.epoch) for t in run.engine.runs.tasks(run.id)}


@pytest.mark.parametrize("how", ["reopen", "retry from"])
def test_a_task_comes_back_with_everything_that_transitively_needs_it(
    engine: Engine, clock: ManualClock, how: str
) -> None:
    run = start(engine, FORK)
    run.finish("plan", "left", "right", "join")
    assert run.status == "completed"
    clock.advance(1)
    if how == "reopen":
        assert engine.tasks.reopen(run.steps["left"]).ok
    else:
        assert engine.runs.retry(run.id, step="left").ok
    assert run.status == "running"
    assert engine.runs.get(run.id).generation == 2
    assert run.states == {"plan": "done", "left": "ready", "right": "done", "join": "blocked"}
    assert marks(run) == {"plan": (1, 1), "left": (2, 2), "right": (1, 1), "join": (2, 2)}
    changed = [
        event for event in engine.runs.events(run.id) if event.at == to_datetime(clock.now())
    ]
    assert sorted(event.type for event in changed) == [
        "run.reopened",
        "task.reopened",
        "task.reopened",
    ]
    assert run.task("left").output is None
    run.finish("left", "join")
    assert run.status == "completed"
    assert run.event_types().count("run.completed") == 2


def test_a_running_task_caught_in_it_is_superseded_blocked_and_counts_no_failure(
    engine: Engine,
) -> None:
    run = start(engine, FORK)
    run.finish("plan", "left")
    right = run.take("right")
    assert engine.runs.retry(run.id, step="plan").ok
    assert run.states == {
        "plan": "ready",
        "left": "blocked",
        "right": "blocked",
        "join": "blocked",
    }
    task = run.task("right")
    assert (task.attempt, task.failures, task.lost, task.lease) == (1, 0, 0, None)
    last = engine.tasks.events(right.task.id)[-1]
    assert (last.type, last.source, last.target) == ("task.superseded", "running", "queued")
    (attempt,) = engine.tasks.attempts(right.task.id)
    assert attempt.outcome == "superseded"
    assert engine.work.complete(right.task.id, right.token).reason is Refusal.STALE_TOKEN
    run.finish("plan", "left", "right", "join")
    assert run.status == "completed"
    assert [a.number for a in engine.tasks.attempts(right.task.id)] == [1, 2]


def test_retry_from_a_step_that_runs_supersedes_it_and_gives_it_back_at_once(
    engine: Engine,
) -> None:
    run = start(engine)
    plan = run.take("plan")
    assert engine.runs.retry(run.id, step="plan").ok
    assert run.states["plan"] == "ready"
    assert engine.work.complete(plan.task.id, plan.token).reason is Refusal.STALE_TOKEN
    assert engine.work.claim("worker")[0].attempt == 2


def test_retry_from_in_a_failed_run_brings_back_what_failed_elsewhere(engine: Engine) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    left = run.take("left")
    run.break_for_good("right")
    assert engine.work.complete(left.task.id, left.token).ok
    assert run.status == "failed"
    assert engine.runs.retry(run.id, step="left").ok
    assert (run.status, run.holds) == ("running", [])
    assert run.states == {"plan": "done", "left": "ready", "right": "ready", "join": "blocked"}
    assert marks(run)["right"] == (2, 1)


def test_retry_from_in_a_cancelled_run_waits_for_the_steps_before_it(engine: Engine) -> None:
    run = start(engine)
    run.take("plan")
    assert engine.runs.cancel(run.id).ok
    assert engine.runs.retry(run.id, step="work").ok
    assert run.states == {"plan": "ready", "work": "blocked", "review": "blocked"}
    run.finish("plan", "work", "review")
    assert run.status == "completed"


def test_a_lone_task_is_reopened_with_those_that_need_it(engine: Engine) -> None:
    first = create(engine)
    second = create(engine, needs=(first,))
    third = create(engine, needs=(second,), enqueue=False)
    finish(engine, first)
    finish(engine, second)
    assert engine.tasks.reopen(first).ok
    tasks = [engine.tasks.get(each) for each in (first, second, third)]
    assert [task.status for task in tasks] == ["queued", "queued", "idle"]
    assert [task.blocked for task in tasks] == [False, True, True]
    assert [task.epoch for task in tasks] == [2, 2, 2]


def test_a_refused_reopen_leaves_dependents_alone(engine: Engine, store_url: str) -> None:
    first = create(engine)
    create(engine, needs=(first,))
    store = dump(store_url)
    answer = engine.tasks.reopen(first)
    assert (answer.ok, answer.reason) == (False, Refusal.INVALID_TRANSITION)
    assert dump(store_url) == store


def test_reset_makes_a_task_as_if_it_had_never_run_but_for_its_fence(
    engine: Engine, clock: ManualClock
) -> None:
    stage = bring(engine, Status.FAILED)
    clock.advance(5)
    assert engine.tasks.reset(stage.task_id).ok
    task = engine.tasks.get(stage.task_id)
    assert (task.status, task.attempt, task.failures, task.epoch) == ("idle", 1, 0, 2)
    assert (task.error, task.output, task.usage, task.started_at, task.finished_at) == (None,) * 5
    assert engine.work.claim("worker") == []
    assert engine.tasks.enqueue(stage.task_id).ok
    assert engine.work.claim("worker")[0].attempt == 2


def test_reset_of_a_done_task_blocks_those_that_need_it_and_have_not_started(
    engine: Engine,
) -> None:
    run = start(engine)
    run.finish("plan")
    assert run.states["work"] == "ready"
    assert engine.tasks.reset(run.steps["plan"]).ok
    assert run.states == {"plan": "idle", "work": "blocked", "review": "blocked"}
    assert engine.tasks.enqueue(run.steps["plan"]).ok
    run.finish("plan", "work", "review")
    assert run.status == "completed"


def test_reset_of_a_task_with_started_dependents_is_refused(engine: Engine, store_url: str) -> None:
    run = start(engine)
    run.finish("plan")
    run.take("work")
    store = dump(store_url)
    answer = engine.tasks.reset(run.steps["plan"])
    assert (answer.ok, answer.reason) == (False, Refusal.STARTED_DEPENDENTS)
    assert dump(store_url) == store


def test_a_dependent_that_was_released_has_started_all_the_same(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    work = run.take("work")
    assert engine.work.release(work.task.id, work.token).ok
    assert engine.tasks.reset(run.steps["plan"]).reason is Refusal.STARTED_DEPENDENTS


def test_reset_of_a_failed_task_lets_its_run_go_on(engine: Engine) -> None:
    run = start(engine)
    run.break_for_good("plan")
    assert run.status == "failed"
    assert engine.tasks.reset(run.steps["plan"]).ok
    assert (run.status, run.holds) == ("running", [])
    assert run.states == {"plan": "idle", "work": "blocked", "review": "blocked"}
    assert engine.tasks.enqueue(run.steps["plan"]).ok
    run.finish("plan", "work", "review")
    assert run.status == "completed"


def test_reset_of_the_last_task_reopens_a_completed_run(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    assert engine.tasks.reset(run.steps["review"]).ok
    assert run.status == "running"
    assert engine.runs.get(run.id).generation == 2
    assert engine.tasks.run_now(run.steps["review"]).ok
    run.finish("review")
    assert run.status == "completed"
