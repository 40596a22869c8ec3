"""Task records: rows of tasks as records of the model, which a page of runs does not load."""

from __future__ import annotations

import json
from functools import lru_cache

from holdfast.engine.read.records import read_value
from holdfast.model.frozen_record import make_record
from holdfast.model.labels import read_labels
from holdfast.model.moment import to_datetime
from holdfast.model.retry import MICROSECONDS, RetryPolicy
from holdfast.model.status import Hold, PlanningPhase, Status, TaskKind
from holdfast.model.task import Lease, Task
from holdfast.store.database import Row

_KINDS = {each.value: each for each in TaskKind}
_STATUSES = {each.value: each for each in Status}
_PHASES = {each.value: each for each in PlanningPhase}
_UNCHANGED_COLUMNS = (
    *("run_id", "parent_id", "step", "title", "agent", "priority", "position"),
    *("key", "concurrency_key", "attempt", "failures", "lost", "generation", "epoch", "version"),
    *("waits_for", "parent_epoch", "item", "total", "round", "max_rounds", "escalated_from"),
)
_MOMENTS = ("scheduled_for", "created_at", "started_at", "finished_at", "held_until")
_read_hold = lru_cache(maxsize=256)(Hold)


@lru_cache(maxsize=100)
def _read_retry(max_attempts: int, max_lost: int, backoff: int, backoff_max: int) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=max_attempts,
        max_lost=max_lost,
        backoff=backoff / MICROSECONDS,
        backoff_max=backoff_max / MICROSECONDS,
    )


def read_task(row: Row) -> Task:
    return make_record(
        Task,
        {
            **{name: row[name] for name in _UNCHANGED_COLUMNS},
            **{name: to_datetime(row[name]) for name in _MOMENTS},
            "id": row["id"],
            "kind": _KINDS[row["kind"]],
            "status": _STATUSES[row["status"]],
            "planning_phase": _PHASES[row["planning_phase"]],
            "blocked": bool(row["blocked"]),
            "holds": _read_hold(row["holds"]),
            "run_holds": _read_hold(row["run_holds"]),
            "due": bool(row["due"]),
            "run_now": bool(row["run_now"]),
            "skipped": bool(row["skipped"]),
            "tags": tuple(json.loads(row["tags"])) if row["tags"] != "[]" else (),
            "retry": _read_retry(
                row["max_attempts"], row["max_lost"], row["backoff"], row["backoff_max"]
            ),
            "timeout": None if row["timeout"] is None else row["timeout"] / MICROSECONDS,
            "payload": read_value(row["payload"]),
            "output": read_value(row["output"]),
            "error": read_value(row["error"]),
            "usage": read_value(row["usage"]),
            "progress": read_value(row["progress"]),
            "lease": _read_lease(row),
            "superseded": bool(row["superseded"]),
            "feedback": read_value(row["feedback"]),
            "question": read_value(row["question"]),
            "calls": row["calls"],
            "labels": read_labels(row["labels"]),
        },
    )


def _read_lease(row: Row) -> Lease | None:
    if row["lease_expires_at"] is None:
        return None
    return Lease(owner=row["worker"], expires_at=to_datetime(row["lease_expires_at"]))
