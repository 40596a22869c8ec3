"""The record of one transition, and the fold that gives a row back from its events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.model.shown import Shown

FOLDED = (
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
RUN_FOLDED = ("holds", "budget_usd", "budget_attempts", "deadline")

OUTCOMES = {
    "task.done": "completed",
    "task.failed": "failed",
    "task.retrying": "failed",
    "task.released": "released",
    "task.suspended": "released",
    "task.asked": "released",
    "task.rejected": "rejected",
    "task.lost": "lost",
    "task.cancelled": "cancelled",
    "task.superseded": "superseded",
}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Event(Shown):
    """The record of one transition; `source` and `target` are statuses, `at` microseconds."""

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
    at: int
    data: dict[str, Any]


def fold(events: Iterable[Event]) -> dict[str, Any]:
    """Everything the events of one run or task say about its row, in order of version."""
    state: dict[str, Any] = {}
    for event in events:
        folded = RUN_FOLDED if event.task_id is None else FOLDED
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
    """How the attempt ended that an event took out of running."""
    if "outcome" in data:
        return str(data["outcome"])
    if event_type == "task.failed" and "lost" in data:
        return "lost"
    return None if event_type is None else OUTCOMES.get(event_type)


def read_data(text: str | None) -> dict[str, Any]:
    data = json.loads(text) if text else {}
    return data if isinstance(data, dict) else {}
