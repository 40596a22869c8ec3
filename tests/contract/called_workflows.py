"""Runs whose steps call a workflow, for the suites about such steps."""

from __future__ import annotations

from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.run import Run
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.task_states import StartedRun, start

SHIP = Workflow.define("shipping", (Step(id="pack"), Step(id="send", needs=("pack",))))
LAST = Step(id="tell", needs=("ship",))


def call(name: str = "ship", workflow: Workflow = SHIP, given: object = None, **more: Any) -> Step:
    work = StepWork(workflow=workflow.name, version=workflow.version, input=given)
    return Step(id=name, work=work, **more)


def begin(
    engine: Engine, *steps: Step, workflow: Workflow = SHIP, given: object = None
) -> StartedRun:
    """A run whose steps may call a workflow that the store knows."""
    engine.workflows.add(workflow)
    return start(engine, Workflow.define("order", steps), input=given)


def child(engine: Engine, task_id: str) -> StartedRun:
    """The run that a task waits for, or has waited for."""
    run_id = str(engine.tasks.get(task_id).waits_for)
    steps = {str(task.step): task.id for task in engine.runs.tasks(run_id)}
    return StartedRun(engine=engine, id=run_id, steps=steps)


def of(run: StartedRun, step: str = "ship") -> StartedRun:
    return child(run.engine, run.steps[step])


def get(run: StartedRun) -> Run:
    return run.engine.runs.get(run.id)


def in_items(run: StartedRun, step: str) -> list[str]:
    """The tasks of a step of a loop, in the order of its items."""
    tasks = run.engine.runs.tasks(run.id)
    return [task.id for task in tasks if task.step == step and not task.superseded]


def below(run: StartedRun) -> list[Run]:
    """All that a run has called, and what that has called."""
    return [each for each in run.engine.runs.list() if each.root_id == run.id]
