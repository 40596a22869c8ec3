"""Each statement keeps its own guard, whatever its caller has looked at before.

A caller that is refused elsewhere first would hide a guard that is gone: here every statement is
run alone, on rows that it must leave as they are.
"""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from holdfast.model.status import Hold, Status
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.contract.raw_store import raw
from tests.contract.single_statements import write
from tests.contract.task_states import FORK, bring, create, finish, start, take

ONE_AT_A_TIME = Workflow.define(
    "one", (Step(id="only"),), concurrency=Concurrency(key="key", limit=1)
)


def test_only_a_run_that_waits_for_its_key_is_admitted(engine: Engine) -> None:
    inside, waiting, gone = (start(engine, ONE_AT_A_TIME) for _ in range(3))
    assert engine.runs.cancel(gone.id).ok
    assert write(engine, "admit_run", run_id=inside.id) == set()
    assert write(engine, "admit_run", run_id=gone.id) == set()
    inside.finish("only")
    assert waiting.holds == []


@pytest.mark.parametrize("status", [Status.RUNNING, Status.FAILED, Status.CANCELLED, Status.DONE])
def test_a_task_that_has_started_is_not_blocked_again(engine: Engine, status: Status) -> None:
    need = create(engine)
    finish(engine, need)
    bring(engine, status, needs=(need,))
    assert write(engine, "block_dependents", ids=[need], actor="user") == set()


def test_a_blocked_task_is_not_blocked_again(engine: Engine) -> None:
    need, other = create(engine), create(engine)
    finish(engine, need)
    create(engine, needs=(need, other))
    assert write(engine, "block_dependents", ids=[need], actor="user") == set()


@pytest.mark.parametrize("status", [Status.IDLE, Status.QUEUED, Status.RUNNING, Status.DONE])
def test_only_a_task_that_ended_badly_is_retried(engine: Engine, status: Status) -> None:
    task_id = bring(engine, status).task_id
    assert write(engine, "retry_task", task_id=task_id, actor="user") == set()


def test_failing_is_not_lifted_from_a_run_that_has_ended(engine: Engine) -> None:
    run = start(engine)
    run.break_for_good("plan")
    assert run.status == "failed"
    assert write(engine, "retry_run_tasks", run_id=run.id, named=None, actor="user") == {
        run.steps["plan"]
    }
    assert write(engine, "lift_failing", run_id=run.id, actor="user") == set()
    assert engine.runs.retry(run.id).ok


def test_failing_is_not_lifted_from_a_run_without_it_or_with_a_failed_task(engine: Engine) -> None:
    whole, broken = start(engine, FORK), start(engine, FORK)
    for run in (whole, broken):
        run.finish("plan")
        run.take("left")
    broken.break_for_good("right")
    for run in (whole, broken):
        assert write(engine, "lift_failing", run_id=run.id, actor="user") == set()
    assert broken.holds == ["failing"]


def test_an_ended_task_keeps_the_holds_it_ended_with(engine: Engine) -> None:
    task_id = create(engine)
    assert engine.tasks.hold(task_id, "question").ok
    assert engine.tasks.cancel(task_id).ok
    before = engine.tasks.get(task_id)
    assert engine.tasks.unhold(task_id, "question").reason is Refusal.ALREADY_TERMINAL
    assert engine.tasks.get(task_id) == before


def test_an_ended_run_keeps_the_holds_it_ended_with(engine: Engine) -> None:
    run = start(engine)
    assert engine.runs.hold(run.id, "budget").ok
    assert engine.runs.cancel(run.id).ok
    before = engine.runs.get(run.id)
    assert engine.runs.unhold(run.id, "budget").reason is Refusal.ALREADY_TERMINAL
    assert engine.runs.get(run.id) == before


def test_a_limit_is_lifted_only_from_an_open_task_that_has_it(
    engine: Engine, clock: ManualClock
) -> None:
    limited, cancelled, paused = (create(engine) for _ in range(3))
    later = clock.now() + 5_000_000
    for task_id in (limited, cancelled):
        assert engine.tasks.hold(task_id, "limit", until=later).ok
    assert engine.tasks.cancel(cancelled).ok
    reason = int(Hold.PAUSED)
    held = write(
        engine, "hold_task", task_id=paused, reason=reason, until=later, detail=None, actor="user"
    )
    assert held == {paused}
    assert write(engine, "lift_limits", count=10) == set()
    clock.advance(5)
    assert write(engine, "lift_limits", count=10) == {limited}
    assert engine.tasks.get(paused).holds == Hold.PAUSED
    assert engine.tasks.cancel(paused).ok


def test_a_limit_holds_the_task_that_met_it_until_the_latest_that_was_said(
    engine: Engine, clock: ManualClock
) -> None:
    later = clock.now() + 5_000_000
    reached, beside, idle = create(engine), create(engine), create(engine, enqueue=False)

    def limit(task_id: str, until: int = later) -> set[str]:
        return write(engine, "limit_task", task_id=task_id, until=until)

    assert limit(reached) == {reached}
    assert limit(reached) == limit(reached, later - 1) == limit(idle) == set()
    assert limit(reached, later + 1) == {reached}
    assert [engine.tasks.get(each).holds for each in (beside, idle)] == [0, 0]


def test_only_a_queued_task_becomes_due_and_only_once(engine: Engine, clock: ManualClock) -> None:
    later = clock.now() + 5_000_000
    queued = create(engine, scheduled_for=later)
    create(engine, scheduled_for=later, enqueue=False)
    assert engine.tasks.cancel(create(engine, scheduled_for=later)).ok
    create(engine, scheduled_for=later + 1)

    def marked() -> list[str]:
        rows = engine.database.transact(lambda tx: tx.write("mark_due", count=10))
        return [row["id"] for row in rows]

    assert marked() == []
    clock.advance(5)
    assert marked() == [queued]
    assert marked() == []


@pytest.mark.parametrize("phase", ["active", "finalized"])
def test_a_task_that_is_or_was_planned_is_neither_queued_nor_claimed(
    engine: Engine, store_url: str, phase: str
) -> None:
    task_id = create(engine, enqueue=False)
    with raw(store_url) as run:
        run("UPDATE holdfast_task SET planning_phase = ? WHERE id = ?", phase, task_id)
        assert not engine.tasks.enqueue(task_id).ok
        assert not engine.tasks.run_now(task_id).ok
        assert engine.work.claim_by_id(task_id, "worker") == []
        run("UPDATE holdfast_task SET planning_phase = 'none' WHERE id = ?", task_id)
    assert engine.tasks.enqueue(task_id).ok
    take(engine, task_id)


def test_a_need_taken_away_leaves_every_other_need(engine: Engine) -> None:
    first, second = create(engine), create(engine)
    one, other = create(engine, needs=(first, second)), create(engine, needs=(first, second))
    assert engine.tasks.unblock(one, on=(first,)).ok
    finish(engine, first)
    assert engine.tasks.get(one).blocked
    assert engine.tasks.get(other).blocked
    finish(engine, second)
    assert not engine.tasks.get(one).blocked
    assert engine.tasks.reset(first).reason is None
    assert engine.tasks.get(other).blocked


def test_an_ended_parent_is_not_cancelled_and_neither_are_its_open_children(
    engine: Engine,
) -> None:
    parent = create(engine)
    child = create(engine, parent=parent)
    finish(engine, parent)
    assert not engine.tasks.cancel(parent).ok
    assert engine.tasks.get(child).status is Status.QUEUED


def test_an_ended_child_stays_as_it_is_when_its_parent_is_cancelled(engine: Engine) -> None:
    parent = create(engine)
    children = [
        bring(engine, status, parent=parent).task_id
        for status in (Status.DONE, Status.FAILED, Status.CANCELLED)
    ]
    before = [engine.tasks.get(child) for child in children]
    assert engine.tasks.cancel(parent).ok
    assert [engine.tasks.get(child) for child in children] == before
