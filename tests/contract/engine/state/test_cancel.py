"""Cancel wins: once it has committed, nothing that comes later changes it."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import Status
from tests.contract.raw_store import dump
from tests.contract.task_states import FORK, bring, create, finish, start, take


def test_a_cancelled_task_is_never_claimed(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, scheduled_for=clock.now() + 5)
    assert engine.tasks.cancel(task_id).ok
    clock.advance(60)
    engine.recovery.step()
    assert engine.work.claim("worker", count=10) == []
    assert engine.work.claim_by_id(task_id, "worker") == []
    assert engine.tasks.run_now(task_id).reason is Refusal.INVALID_TRANSITION


def test_recovery_leaves_a_cancelled_task_alone(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    bring(engine, Status.CANCELLED)
    store = dump(store_url)
    clock.advance(3600)
    engine.recovery.step()
    assert dump(store_url) == store


def test_a_second_cancel_is_already_terminal(engine: Engine) -> None:
    stage = bring(engine, Status.CANCELLED)
    assert engine.tasks.cancel(stage.task_id).reason is Refusal.ALREADY_TERMINAL


def test_cancel_of_a_run_cancels_every_open_task_in_the_same_transaction(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    left = run.take("left")
    clock.advance(1)
    assert engine.runs.cancel(run.id, actor="ada").ok
    assert run.statuses == {
        "plan": "done",
        "left": "cancelled",
        "right": "cancelled",
        "join": "cancelled",
    }
    assert run.status == "cancelled"
    ended = [e for e in engine.runs.events(run.id) if e.target == "cancelled"]
    assert {(e.actor, e.at) for e in ended} == {("ada", to_datetime(clock.now()))}
    assert len(ended) == 4
    answer = engine.work.complete(left.task.id, left.token, "late")
    assert (answer.ok, answer.reason) == (False, Refusal.ALREADY_TERMINAL)
    assert engine.work.claim("worker", count=10) == []
    assert run.status == "cancelled"


def test_cancel_of_a_task_cancels_all_open_tasks_below_it(engine: Engine) -> None:
    parent = create(engine, enqueue=False)
    child = create(engine, parent=parent)
    done = create(engine, parent=parent)
    grandchild = bring(engine, Status.RUNNING, parent=child)
    below_done = create(engine, parent=done)
    finish(engine, done)
    bystander = create(engine)
    assert engine.tasks.cancel(parent).ok
    statuses = {
        name: engine.tasks.get(task_id).status.value
        for name, task_id in {
            "parent": parent,
            "child": child,
            "done": done,
            "grandchild": grandchild.task_id,
            "below done": below_done,
            "bystander": bystander,
        }.items()
    }
    assert statuses == {
        "parent": "cancelled",
        "child": "cancelled",
        "done": "done",
        "grandchild": "cancelled",
        "below done": "cancelled",
        "bystander": "queued",
    }


def test_a_refused_cancel_of_an_ended_parent_leaves_its_children_alone(
    engine: Engine, store_url: str
) -> None:
    parent = create(engine)
    create(engine, parent=parent)
    finish(engine, parent)
    store = dump(store_url)
    assert engine.tasks.cancel(parent).reason is Refusal.ALREADY_TERMINAL
    assert dump(store_url) == store


def test_cancel_of_a_run_that_has_ended_changes_nothing(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    answer = engine.runs.cancel(run.id)
    assert answer == TransitionResult(
        ok=False, reason=Refusal.ALREADY_TERMINAL, status="completed", detail=answer.detail
    )


def test_a_cancelled_attempt_is_recorded_as_cancelled(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine)
    take(engine, task_id)
    clock.advance(2)
    assert engine.tasks.cancel(task_id).ok
    (attempt,) = engine.tasks.attempts(task_id)
    assert (attempt.outcome, attempt.owner, attempt.ended_at) == (
        "cancelled",
        "worker",
        to_datetime(clock.now()),
    )
