"""Hooks, as a program asks for them and as the store knows them, and the ends that they follow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.event import Event
from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.step import Concurrency

RUN_ENDS = ("run.completed", "run.failed", "run.cancelled")
TASK_ENDS = ("task.done", "task.failed", "task.cancelled")
ENDS = (*RUN_ENDS, *TASK_ENDS)

# No name contains a blank, so no step or function of a program is taken for a hook.
HOOK_PREFIX = "hook "


@dataclass(frozen=True, kw_only=True, slots=True)
class NewHook:
    """A hook that a program asks for; `about` names the one workflow or task that it follows."""

    name: str
    events: tuple[str, ...]
    about: str | None = None
    agent: str = "default"
    tags: tuple[str, ...] = ()
    priority: int = 0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: float | None = None
    concurrency: Concurrency | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Hook(ReadableRecord):
    """A hook as the store knows it; this program skips a hook with a `problem`."""

    name: str
    events: tuple[str, ...] = ()
    about: str | None
    agent: str | None = None
    max_attempts: int | None = None
    created_at: datetime
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Ended(ReadableRecord):
    """The recorded end of a run, with its workflow, or of a lone task, with its function.

    It has no `seq`, which belongs to the store: the run or task and its version name the event.
    """

    type: str
    run_id: str | None
    task_id: str | None
    workflow: str | None
    step: str | None
    version: int
    generation: int
    source: str | None
    target: str | None
    attempt: int
    actor: str
    at: datetime
    data: dict[str, Any]


def read_end(event: Event, *, workflow: str | None, step: str | None) -> Ended:
    """The end that an event records, for a function that follows it."""
    recorded = asdict(event)
    del recorded["seq"]
    return Ended(**recorded, workflow=workflow, step=step)


def check_ends(events: Collection[str]) -> None:
    """Refuse an empty list, and an event that is not the end of a run or task."""
    for event in events:
        if event not in ENDS:
            raise InvalidInput("events", f"{event!r} is no end; one of {', '.join(ENDS)} is")
    if not events:
        raise InvalidInput("events", f"name at least one of {', '.join(ENDS)}")


def hook_step(name: str) -> str:
    """The step of every task that a hook makes: the tasks of hooks are known by it."""
    return HOOK_PREFIX + name


def hook_name(step: str | None) -> str | None:
    """The name of the hook that made a task of this step, or None."""
    if step is None or not step.startswith(HOOK_PREFIX):
        return None
    return step.removeprefix(HOOK_PREFIX)
