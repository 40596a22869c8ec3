"""Failure holds back what has not started, ends the run, and is undone by one retry."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.task_states import FORK, break_for_good, bring, create, finish, start, take

WIDE = Workflow.define(
    "wide",
    (
        Step(id="one"),
        Step(id="two"),
        Step(id="three"),
        Step(id="last", needs=("one", "two", "three")),
    ),
)


def test_a_failed_need_keeps_its_dependents_blocked(engine: Engine) -> None:
    need = create(engine)
    dependent = create(engine, needs=(need,))
    break_for_good(engine, need)
    task = engine.tasks.get(dependent)
    assert (task.status, task.blocked, task.state) == ("queued", True, "stalled")
    assert engine.tasks.blocked_by(dependent) == [need]
    assert engine.work.claim("worker", count=5) == []
    assert engine.work.claim_by_id(dependent, "worker") == []


def test_a_cancelled_need_keeps_its_dependents_blocked(engine: Engine) -> None:
    need = create(engine)
    dependent = create(engine, needs=(need,))
    assert engine.tasks.cancel(need).ok
    assert engine.tasks.get(dependent).state == "stalled"
    assert engine.tasks.run_now(dependent).ok
    assert engine.work.claim("worker", count=5) == []
    assert engine.tasks.retry(need).ok
    assert engine.tasks.get(dependent).state == "blocked"


def test_after_a_final_failure_nothing_new_starts_and_what_runs_may_finish(engine: Engine) -> None:
    run = start(engine, WIDE)
    two = run.take("two")
    run.break_for_good("one")
    assert run.status == "running"
    assert run.holds == ["failing"]
    assert run.states == {
        "one": "failed",
        "two": "running",
        "three": "stalled",
        "last": "stalled",
    }
    assert engine.work.claim("worker", count=5) == []
    assert engine.work.claim_by_id(run.steps["three"], "worker") == []
    assert engine.tasks.run_now(run.steps["three"]).ok
    assert engine.work.claim("worker", count=5) == []
    assert engine.work.complete(two.task.id, two.token, "two").ok
    assert run.status == "failed"
    assert engine.runs.get(run.id).error == "broken"
    assert run.statuses == {"one": "failed", "two": "done", "three": "queued", "last": "queued"}


def test_a_failure_that_is_still_retried_does_not_fail_the_run(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine)
    plan = run.take("plan")
    assert engine.work.fail(plan.task.id, plan.token, "broken").status == "queued"
    assert (run.status, run.holds) == ("running", [])
    clock.advance(300)
    run.finish("plan", "work", "review")
    assert run.status == "completed"


def test_a_task_lost_for_good_fails_its_run(engine: Engine, clock: ManualClock) -> None:
    steps = (Step(id="only", retry=RetryPolicy(max_lost=1)), Step(id="next", needs=("only",)))
    run = start(engine, Workflow.define("fragile", steps))
    run.take("only")
    clock.advance(30)
    engine.recovery.step()
    assert run.status == "failed"


def test_a_task_cancelled_alone_counts_as_a_failure_of_its_run(engine: Engine) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    right = run.take("right")
    assert engine.tasks.cancel(run.steps["left"]).ok
    assert (run.status, run.holds) == ("running", ["failing"])
    assert engine.work.complete(right.task.id, right.token).ok
    assert run.status == "failed"
    assert engine.runs.get(run.id).error == "cancelled"


def test_retry_of_a_run_reopens_everything_that_failed_or_was_cancelled(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, WIDE)
    two = run.take("two")
    run.break_for_good("one")
    assert engine.tasks.cancel(run.steps["three"]).ok
    assert engine.work.complete(two.task.id, two.token, "kept").ok
    before = {task.step: task for task in engine.runs.tasks(run.id)}
    assert engine.runs.get(run.id).generation == 1
    clock.advance(1)
    assert engine.runs.retry(run.id, actor="ada").ok
    assert (run.status, run.holds) == ("running", [])
    assert engine.runs.get(run.id).generation == 2
    assert engine.runs.get(run.id).finished_at is None
    assert run.states == {"one": "ready", "two": "done", "three": "ready", "last": "blocked"}
    for task in engine.runs.tasks(run.id):
        retried = task.step in {"one", "three"}
        old = before[task.step]
        assert task.generation == old.generation + retried
        assert task.epoch == old.epoch
        assert task.failures == 0
    assert run.task("two").output == "kept"
    run.finish("one", "three", "last")
    assert run.status == "completed"


def test_retry_of_one_task_retries_its_whole_run(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    run.take("work")
    assert engine.runs.cancel(run.id).ok
    assert engine.tasks.retry(run.steps["review"]).ok
    assert run.status == "running"
    assert run.states == {"plan": "done", "work": "ready", "review": "blocked"}
    run.finish("work", "review")
    assert run.status == "completed"


def test_retry_while_something_still_runs_lifts_failing_without_ending_the_run(
    engine: Engine,
) -> None:
    run = start(engine, WIDE)
    run.take("two")
    run.break_for_good("one")
    assert engine.tasks.retry(run.steps["one"]).ok
    assert (run.status, run.holds) == ("running", [])
    assert engine.runs.get(run.id).generation == 1
    assert "run.failed" not in run.event_types()
    assert {a.task.step for a in engine.work.claim("worker", count=5)} == {"one", "three"}


def test_retry_waits_for_no_backoff(engine: Engine, clock: ManualClock) -> None:
    run = start(engine, WIDE)
    waiting = run.take("two")
    assert engine.work.fail(waiting.task.id, waiting.token, "once").status == "queued"
    run.break_for_good("one")
    assert run.status == "failed"
    assert run.task("two").scheduled_for is not None
    assert engine.runs.retry(run.id).ok
    assert run.task("one").scheduled_for is None
    assert run.states["one"] == "ready"
    assert run.states["two"] == "scheduled"
    clock.advance(300)
    run.finish("one", "two", "three", "last")
    assert run.status == "completed"


def test_retry_of_a_lone_task_leaves_others_alone(engine: Engine) -> None:
    first, second = bring(engine, Status.FAILED), bring(engine, Status.FAILED)
    dependent = create(engine, needs=(first.task_id,))
    assert engine.tasks.retry(first.task_id).ok
    assert engine.tasks.get(second.task_id).status == "failed"
    assert engine.tasks.get(dependent).blocked
    finish(engine, first.task_id)
    assert engine.tasks.get(dependent).state == "ready"


def test_retry_of_a_task_that_ended_well_in_a_failed_run_is_refused(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    run.break_for_good("work")
    answer = engine.tasks.retry(run.steps["plan"])
    assert (answer.ok, answer.reason, answer.status) == (False, Refusal.INVALID_TRANSITION, "done")
    assert run.status == "failed"


def test_a_retry_of_a_task_answers_with_the_status_of_the_task_and_not_of_its_run(
    engine: Engine,
) -> None:
    run = start(engine)
    run.break_for_good("plan")
    answer = engine.tasks.retry(run.steps["plan"])
    assert (answer.ok, answer.status, run.status) == (True, "queued", "running")
    run.finish("plan", "work", "review")
    late = engine.runs.retry(run.id, step="nowhere.1")
    assert (late.ok, late.reason) == (False, Refusal.UNKNOWN_STEP)


def test_a_retry_that_fails_again_fails_the_run_again(engine: Engine) -> None:
    run = start(engine)
    for generation in (1, 2, 3):
        assert engine.runs.get(run.id).generation == generation
        run.break_for_good("plan")
        assert run.status == "failed"
        assert run.task("plan").generation == generation
        assert engine.runs.retry(run.id).ok
    assert run.event_types().count("run.failed") == 3


def test_a_retried_task_waits_for_a_need_that_is_not_done(engine: Engine) -> None:
    need = create(engine)
    dependent = create(engine, needs=(need,))
    assert engine.tasks.cancel(dependent).ok
    assert engine.tasks.retry(dependent).ok
    assert engine.tasks.get(dependent).state == "blocked"
    take(engine, need)
