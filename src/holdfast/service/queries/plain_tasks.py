"""Plain tasks (1.1 to 1.2 times as fast): views made from rows that have no run, hold or wait."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.clock import MICROSECONDS
from holdfast.engine.read.records import read_value
from holdfast.model.labels import read_labels
from holdfast.service.queries.views import View, format_time


def is_plain(row: Mapping[str, Any]) -> bool:
    """Whether a task without a run has no hold, needs or due time: its state is its status then."""
    return (
        row["kind"] == "work"
        and row["run_id"] is None
        and row["planning_phase"] == "none"
        and not row["holds"]
        and not row["run_holds"]
        and not row["blocked"]
        and bool(row["due"] or row["status"] != "queued")
    )


def is_fresh(row: Mapping[str, Any]) -> bool:
    """Whether a task is in its first attempt and epoch, so that no other row has usage of it."""
    return row["attempt"] <= 1 and row["epoch"] <= 1 and row["usage"] is None


def view_plain(row: Mapping[str, Any]) -> View:
    """The same view as of the task read from a plain row, in a third of the time."""
    status, timeout, expires = row["status"], row["timeout"], row["lease_expires_at"]
    told = {
        "id": row["id"],
        "kind": "work",
        "parent_id": row["parent_id"],
        "step": row["step"],
        "item": row["item"],
        "calls": row["calls"],
        "title": row["title"],
        "agent": row["agent"],
        "escalated_from": row["escalated_from"],
        "status": status,
        "state": "ready" if status == "queued" else status,
        "planning_phase": "none",
        "blocked_by": [],
        "holds": [],
        "skipped": bool(row["skipped"]),
        "superseded": bool(row["superseded"]) or None,
        "attempt": row["attempt"],
        "failures": row["failures"],
        "max_attempts": row["max_attempts"],
        "lost": row["lost"],
        "max_lost": row["max_lost"],
        "round": row["round"],
        "max_rounds": row["max_rounds"] if row["round"] else None,
        "generation": row["generation"],
        "priority": row["priority"],
        "position": row["position"],
        "scheduled_for": format_time(row["scheduled_for"]),
        "waits_for": row["waits_for"],
        "tags": [] if row["tags"] == "[]" else json.loads(row["tags"]),
        "labels": None if row["labels"] is None else read_labels(row["labels"]),
        "key": row["key"],
        "timeout": None if timeout is None else timeout / MICROSECONDS,
        "payload": read_value(row["payload"]),
        "output": read_value(row["output"]),
        "error": read_value(row["error"]),
        "progress": read_value(row["progress"]),
        "question": read_value(row["question"]),
        "feedback": read_value(row["feedback"]),
        "lease": expires and {"owner": row["worker"], "expires_at": format_time(expires)},
        "usage": read_value(row["usage"]),
        "version": row["version"],
        "created_at": format_time(row["created_at"]),
        "started_at": format_time(row["started_at"]),
        "finished_at": format_time(row["finished_at"]),
    }
    return {name: value for name, value in told.items() if value is not None}
