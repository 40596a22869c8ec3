"""Hooks for tests, and the tasks that they made."""

from __future__ import annotations

from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.hook import RUN_ENDS, TASK_ENDS, NewHook, hook_name
from holdfast.model.task import Task

AGENT = "hooks"


def hook(name: str = "after", *events: str, **fields: Any) -> NewHook:
    """A hook for an agent of its own, so that no claim of a test meets its tasks."""
    chosen = events or (*RUN_ENDS, *TASK_ENDS)
    return NewHook(name=name, events=chosen, **{"agent": AGENT, **fields})


def fired(engine: Engine, name: str = "after") -> list[Task]:
    """The tasks that a hook has made, oldest first."""
    tasks = engine.tasks.list(limit=1_000, agent=AGENT)
    return sorted((t for t in tasks if hook_name(t.step) == name), key=lambda task: task.id)


def ends(engine: Engine, name: str = "after") -> list[tuple[str, str, int]]:
    """Which ends a hook was called for: their kind, whose, in which generation."""
    events = [task.payload["event"] for task in fired(engine, name)]
    return sorted(
        (event["type"], event["task_id"] or event["run_id"], event["generation"])
        for event in events
    )
