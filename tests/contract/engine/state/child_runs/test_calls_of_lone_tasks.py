"""Tasks outside of any run that are a run of a workflow: parts of plans, and tasks of their own."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.task import NewTask
from tests.contract.called_workflows import SHIP, child
from tests.contract.task_states import create, finish, take


def call(engine: Engine, **fields: Any) -> str:
    engine.workflows.add(SHIP)
    return create(engine, "ship it", **{"workflow": "shipping", "payload": {"to": "Ada"}} | fields)


def end(engine: Engine, task_id: str) -> None:
    run = child(engine, task_id)
    if engine.tasks.get(run.steps["pack"]).status != "done":
        run.finish("pack")
    finish(engine, run.steps["send"], {"sent": True})


def test_a_task_that_calls_a_workflow_ends_with_its_run(engine: Engine) -> None:
    task_id = call(engine)
    run = child(engine, task_id)
    started = engine.runs.get(run.id)
    assert (started.input, started.parent_id, started.root_id) == ({"to": "Ada"}, task_id, None)
    assert engine.work.claim("worker", agents=["*"], count=9)[0].run_id == run.id
    assert "it ends with shipping" in str(engine.why(task_id))
    kept = engine.tasks.delete(task_id)
    assert f'it has called {run.id}, which goes on; hf.tasks.cancel("{task_id}")' in kept.detail
    again = call(engine)
    end(engine, again)
    done = engine.tasks.get(again)
    assert (done.status, done.output) == ("done", {"sent": True})
    assert engine.doctor().ok


def test_a_part_of_a_plan_is_a_run_that_waits_its_turn_and_fails_the_plan_with_it(
    engine: Engine,
) -> None:
    plan = create(engine, "shed", plan=True)
    part: dict[str, Any] = {"parent": plan, "enqueue": False}
    first = create(engine, "first", **part)
    ship = call(engine, **part)
    last = create(engine, "last", **part)
    assert engine.tasks.start_planning(ship).reason is Refusal.INVALID_TRANSITION
    assert engine.tasks.finalize_plan(plan).ok
    assert engine.tasks.get(ship).waits_for is None
    finish(engine, first)
    run = child(engine, ship)
    run.break_for_good("pack")
    assert [engine.tasks.get(each).status for each in (ship, plan)] == ["failed", "failed"]
    refused = engine.runs.retry(run.id)
    assert refused.reason is Refusal.PART_OF_RUN
    assert f'hf.tasks.retry("{ship}") has it go on' in refused.detail
    assert engine.tasks.retry(plan).ok
    assert child(engine, ship).id == run.id
    end(engine, ship)
    finish(engine, last, 3)
    assert engine.tasks.get(plan).output == ["output", {"sent": True}, 3]
    assert engine.doctor().ok


def test_a_failing_plan_lets_what_it_has_called_end(engine: Engine) -> None:
    plan = create(engine, "shed", plan=True)
    ship = call(engine, parent=plan, enqueue=False)
    other = create(engine, "other", parent=plan, enqueue=False)
    assert engine.tasks.finalize_plan(plan, graph={}).ok
    given = take(engine, other)
    assert engine.work.fail(other, given.token, "no", retryable=False).ok
    assert not engine.tasks.get(plan).terminal
    end(engine, ship)
    assert engine.tasks.get(ship).status == "done"
    assert engine.tasks.get(plan).status == "failed"
    assert engine.doctor().ok


def test_a_cancel_and_a_reset_end_the_called_run_and_a_retry_takes_it_up(engine: Engine) -> None:
    ship = call(engine)
    run = child(engine, ship)
    assert engine.tasks.cancel(ship).ok
    assert engine.runs.get(run.id).status == "cancelled"
    assert engine.tasks.retry(ship).ok
    assert child(engine, ship).id == run.id
    assert engine.tasks.reset(ship).ok
    assert engine.runs.get(run.id).status == "cancelled"
    assert engine.tasks.enqueue(ship).ok
    other = child(engine, ship)
    assert other.id != run.id
    end(engine, ship)
    assert engine.tasks.reopen(ship).ok
    assert child(engine, ship).id not in {run.id, other.id}
    assert engine.doctor().ok


def test_a_workflow_that_the_store_does_not_know_fails_the_task(engine: Engine) -> None:
    lost = create(engine, workflow="unknown")
    assert engine.tasks.get(lost).status == "failed"
    assert "this store knows no workflow 'unknown'" in engine.tasks.get(lost).error
    others: dict[str, Any] = {"step": "pack", "tags": ("gpu",), "scheduled_for": "1h"}
    for field, value in others.items():
        with pytest.raises(InvalidInput, match=f"{field}: is not for a task that is a run"):
            engine.tasks.create(NewTask(title="x", workflow="unknown", **{field: value}))
    assert engine.doctor().ok


def test_a_key_tells_runs_of_other_workflows_apart(engine: Engine) -> None:
    first = call(engine, key="ship")
    assert call(engine, key="ship") == first
    with pytest.raises(Exception, match="already belongs"):
        call(engine, key="ship", workflow="other")
