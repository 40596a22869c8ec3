"""Advance: derived from state, the same however often and by whom it is asked."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import Step, Workflow

CHAIN = Workflow.define(
    "chain", (Step(id="plan"), Step(id="work", needs=("plan",)), Step(id="review", needs=("work",)))
)


def finish_next(engine: Engine) -> str:
    (assignment,) = engine.work.claim("worker")
    assert engine.work.complete(assignment.task.id, assignment.token, assignment.task.step).ok
    return str(assignment.task.step)


def test_steps_run_in_order_and_the_run_completes_once(engine: Engine) -> None:
    run = engine.runs.start(NewRun(workflow=CHAIN))
    assert [finish_next(engine) for _ in range(3)] == ["plan", "work", "review"]
    assert engine.runs.get(run.id).status == "completed"
    completed = [event for event in engine.runs.events(run.id) if event.type == "run.completed"]
    assert len(completed) == 1
