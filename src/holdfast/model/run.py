"""Runs: a run as a caller asks for it, a run as the store knows it, and the JSON record of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.model.budget import Budget
from holdfast.model.event import Event, read_attempts
from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.moment import describe_moment
from holdfast.model.status import RUN_TERMINAL, Hold, RunStatus

if TYPE_CHECKING:
    # Tasks, and the parts of a new run, are slow to load, and reading a run needs none.
    from holdfast.model.task import Task
    from holdfast.model.trace import Trace
    from holdfast.model.units import Moment
    from holdfast.model.workflow.graph import Concurrency, Workflow


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRun:
    """A run as a caller asks for it: its workflow, its input and its key.

    Its events belong to the `trace`, or to a trace of their own without one. The run fails when
    it has not ended `deadline` seconds after its start; without one, its workflow's deadline holds.
    Nothing of it starts before the moment that it is `scheduled_for`. A `concurrency` of its own
    stands in place of that of its workflow. People find it again by its `labels`, which are added
    to those that its workflow gives. The folder of its workspace is on the `host`, or on the
    machine that starts it.
    """

    workflow: Workflow
    input: Any = None
    key: str | None = None
    priority: int = 0
    trace: Trace | None = None
    deadline: float | None = None
    scheduled_for: Moment | None = None
    concurrency: Concurrency | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    host: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Run(ReadableRecord):
    """A run as the store knows it."""

    id: str
    workflow: str
    workflow_version: str
    key: str | None
    status: RunStatus
    holds: Hold
    input: Any
    error: Any
    priority: int
    concurrency_key: str | None
    version: int
    generation: int
    created_at: datetime
    finished_at: datetime | None
    # Of a called run: the task that called it, and the run at the top of the chain of calls.
    parent_id: str | None = None
    root_id: str | None = None
    # The budget includes what was added since the start; the run fails at its deadline.
    budget: Budget | None = None
    deadline: datetime | None = None
    # The time before which nothing of the run starts, if one was given.
    scheduled_for: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def terminal(self) -> bool:
        return self.status in RUN_TERMINAL


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateResult:
    """The id of a run or task that now exists, and whether this call made it."""

    id: str
    created: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """A run with its tasks and events; `called` holds the records of the runs that it called."""

    run: Run
    tasks: tuple[Task, ...]
    events: tuple[Event, ...]
    called: tuple[RunRecord, ...] = ()

    def to_json(self) -> str:
        """The same text for the same run, however often and wherever it is written."""
        return json.dumps(self._to_dict(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"

    def _to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "run": _plain(self.run),
            "tasks": self._tasks(),
            "events": [_plain(event) for event in self.events],
        }
        called = [each._to_dict() for each in self.called]  # noqa: SLF001 - one of the same kind
        return told | ({"called": called} if called else {})

    def _tasks(self) -> list[dict[str, Any]]:
        own: dict[str, list[Event]] = {task.id: [] for task in self.tasks}
        for event in self.events:
            if event.task_id is not None:
                own[event.task_id].append(event)
        attempts = {task_id: read_attempts(events) for task_id, events in own.items()}
        return [
            _plain(task) | {"attempts": [_plain(each) for each in attempts[task.id]]}
            for task in self.tasks
        ]


def _plain(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass of the model
    return {name: _plain_value(value) for name, value in asdict(record).items()}


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Hold):
        return list(value.names)
    return describe_moment(value) if isinstance(value, datetime) else value
