"""Events: the record of one transition, and the rows and attempts that follow from events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.moment import to_datetime

if TYPE_CHECKING:
    from holdfast.model.task import Attempt

# Fields of a row that the data of an event sets, where the data names them.
TASK_FIELDS = (
    "blocked",
    "holds",
    "run_holds",
    "failures",
    "lost",
    "epoch",
    "priority",
    "position",
    "scheduled_for",
    "planning_phase",
    "skipped",
    "run_now",
    "superseded",
    "waits_for",
    "round",
)
RUN_FIELDS = ("holds", "budget_usd", "budget_attempts", "deadline")

# The outcome of an attempt, by the type of the event that ended the attempt.
OUTCOMES = {
    "task.done": "completed",
    "task.failed": "failed",
    "task.retrying": "failed",
    "task.released": "released",
    "task.suspended": "released",
    "task.asked": "released",
    "task.escalated": "failed",
    "task.rejected": "rejected",
    "task.lost": "lost",
    "task.cancelled": "cancelled",
    "task.superseded": "superseded",
}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Event(ReadableRecord):
    """The record of one transition; `source` and `target` are statuses."""

    seq: int
    type: str
    run_id: str | None
    task_id: str | None
    version: int
    source: str | None
    target: str | None
    attempt: int
    generation: int
    actor: str
    at: datetime
    data: dict[str, Any]


def fold_events(events: Iterable[Event]) -> dict[str, Any]:
    """The fields of a row, from the events of one run or task in order of version."""
    state: dict[str, Any] = {}
    for event in events:
        folded = RUN_FIELDS if event.task_id is None else TASK_FIELDS
        state |= {
            "status": event.target,
            "version": event.version,
            "generation": event.generation,
        }
        if event.task_id is not None:
            state["attempt"] = event.attempt
            if event.type == "task.running":
                state["waits_for"] = None
        state |= {name: event.data[name] for name in folded if name in event.data}
    return state


def read_outcome(event_type: str | None, data: dict[str, Any]) -> str | None:
    """The outcome of the attempt that an event took out of `running`."""
    if "outcome" in data:
        return str(data["outcome"])
    if event_type == "task.failed" and "lost" in data:
        return "lost"
    return None if event_type is None else OUTCOMES.get(event_type)


def read_event_data(text: str | None) -> dict[str, Any]:
    data = json.loads(text) if text else {}
    return data if isinstance(data, dict) else {}


def read_attempts(events: Iterable[Event]) -> list[Attempt]:
    """The attempts of a task, from its events."""
    # The records of tasks are slow to load, and reading an event needs none.
    from holdfast.model.task import Attempt  # noqa: PLC0415

    attempts: dict[int, Attempt] = {}
    for event in events:
        if event.task_id is None:
            continue
        if event.type == "task.running":
            attempts[event.attempt] = Attempt(
                task_id=event.task_id,
                number=event.attempt,
                owner=event.actor,
                claimed_at=event.at,
            )
        elif event.source == "running" and event.target != "running":
            attempts[event.attempt] = replace(
                attempts[event.attempt],
                ended_at=event.at,
                outcome=read_outcome(event.type, event.data),
                digest=event.data.get("digest"),
                error=event.data.get("error"),
                usage=event.data.get("usage"),
            )
    return list(attempts.values())


def add_stops(
    attempts: Iterable[Attempt], stops: Mapping[int, tuple[int, int, int]]
) -> list[Attempt]:
    """The attempts with their stops: the time, the processes stopped and the processes left."""
    return [
        _add_stop(each, *stops[each.number]) if each.number in stops else each for each in attempts
    ]


def _add_stop(attempt: Attempt, at: int, processes: int, left: int) -> Attempt:
    return replace(attempt, stopped_at=to_datetime(at), stopped=processes, left=left)
