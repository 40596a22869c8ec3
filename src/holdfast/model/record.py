"""All that the store knows of one run at one moment, and the one JSON text of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.model.attempts import read_attempts
from holdfast.model.event import Event
from holdfast.model.run import Run
from holdfast.model.status import Hold
from holdfast.model.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """`called` are the records of all that its steps have called, near or far."""

    run: Run
    tasks: tuple[Task, ...]
    events: tuple[Event, ...]
    called: tuple[RunRecord, ...] = ()

    def to_json(self) -> str:
        """The same text for the same run, however often and wherever it is written."""
        return json.dumps(self._told(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "run": _plain(self.run),
            "tasks": self._tasks(),
            "events": [_plain(event) for event in self.events],
        }
        called = [each._told() for each in self.called]  # noqa: SLF001 - one of the same kind
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
    return {
        name: list(value.names) if isinstance(value, Hold) else value
        for name, value in asdict(record).items()
    }
