"""Tasks and runs brought to where a test begins, by the engine's own operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import Assignment, NewTask, Task
from holdfast.model.workflow.graph import Step, Workflow

NOT_GENUINE = "1." + "0" * 32
MISSING_TASK = "t_" + "0" * 20
MISSING_RUN = "r_" + "0" * 20

CHAIN = Workflow.define(
    "chain", (Step(id="plan"), Step(id="work", needs=("plan",)), Step(id="review", needs=("work",)))
)
FORK = Workflow.define(
    "fork",
    (
        Step(id="plan"),
        Step(id="left", needs=("plan",)),
        Step(id="right", needs=("plan",)),
        Step(id="join", needs=("left", "right")),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A task, and the token of the latest attempt it had, if it had any."""

    task_id: str
    token: str = NOT_GENUINE


def create(engine: Engine, title: str = "task", **fields: Any) -> str:
    return engine.tasks.create(NewTask(title=title, **fields)).id


def take(engine: Engine, task_id: str, *, lease: float | None = None) -> Assignment:
    """Claim one task by its id; it must be there for the taking."""
    task = engine.tasks.get(task_id)
    (assignment,) = engine.work.claim_by_id(
        task_id, "worker", agents=[task.agent], tags=task.tags, lease=lease
    )
    return assignment


def finish(engine: Engine, task_id: str, output: object = "output") -> Assignment:
    assignment = take(engine, task_id)
    assert engine.work.complete(task_id, assignment.token, output).ok
    return assignment


def break_for_good(engine: Engine, task_id: str) -> Assignment:
    assignment = take(engine, task_id)
    assert engine.work.fail(task_id, assignment.token, "broken", retryable=False).ok
    return assignment


def bring(engine: Engine, status: Status, **fields: Any) -> Stage:
    """Bring a new task to a status, through an attempt wherever the status can follow one."""
    task_id = create(engine, enqueue=status is not Status.IDLE, **fields)
    if status is Status.IDLE:
        return Stage(task_id=task_id)
    token = take(engine, task_id).token
    match status:
        case Status.QUEUED:
            assert engine.work.release(task_id, token).ok
        case Status.DONE:
            assert engine.work.complete(task_id, token, "output").ok
        case Status.FAILED:
            assert engine.work.fail(task_id, token, "broken", retryable=False).ok
        case Status.CANCELLED:
            assert engine.tasks.cancel(task_id).ok
    assert engine.tasks.get(task_id).status is status
    return Stage(task_id=task_id, token=token)


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """A run with its tasks by the names of their steps."""

    engine: Engine
    id: str
    steps: dict[str, str]

    def task(self, step: str) -> Task:
        return self.engine.tasks.get(self.steps[step])

    def take(self, step: str) -> Assignment:
        return take(self.engine, self.steps[step])

    def finish(self, *steps: str) -> None:
        for step in steps:
            finish(self.engine, self.steps[step], f"{step} output")

    def break_for_good(self, step: str) -> None:
        break_for_good(self.engine, self.steps[step])

    @property
    def status(self) -> str:
        return self.engine.runs.get(self.id).status.value

    @property
    def holds(self) -> list[str]:
        return list(self.engine.runs.get(self.id).holds.names)

    @property
    def statuses(self) -> dict[str, str]:
        return {str(task.step): task.status.value for task in self.engine.runs.tasks(self.id)}

    @property
    def states(self) -> dict[str, str]:
        return {str(task.step): task.state for task in self.engine.runs.tasks(self.id)}

    def event_types(self) -> list[str]:
        return [event.type for event in self.engine.runs.events(self.id) if event.task_id is None]


def start(engine: Engine, workflow: Workflow = CHAIN, **fields: Any) -> StartedRun:
    run_id = engine.runs.start(NewRun(workflow=workflow, **fields)).id
    steps = {str(task.step): task.id for task in engine.runs.tasks(run_id)}
    return StartedRun(engine=engine, id=run_id, steps=steps)
