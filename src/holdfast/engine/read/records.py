"""Records of the model, read from rows of the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.model.budget import Budget, to_dollars
from holdfast.model.event import Event, read_event_data
from holdfast.model.frozen_record import make_record
from holdfast.model.labels import read_labels
from holdfast.model.moment import to_datetime
from holdfast.model.retry import MICROSECONDS, RetryPolicy
from holdfast.model.run import Run
from holdfast.model.status import Hold, PlanningPhase, RunStatus, Status, TaskKind
from holdfast.model.task import Lease, Task
from holdfast.store.database import Row

# The errors of reading a row that another release, or a person by hand, has written.
UNREADABLE_ERRORS = (
    *(HoldfastError, LookupError, TypeError, ValueError),
    *(OverflowError, RecursionError),
)
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


def describe_problem(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\x00", "")[:1_000]


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


def read_run(row: Row) -> Run:
    return Run(
        id=row["id"],
        workflow=row["workflow"],
        workflow_version=row["workflow_version"],
        key=row["key"],
        status=RunStatus(row["status"]),
        holds=Hold(row["holds"]),
        input=read_value(row["input"]),
        error=read_value(row["error"]),
        priority=row["priority"],
        concurrency_key=row["concurrency_key"],
        version=row["version"],
        generation=row["generation"],
        created_at=to_datetime(row["created_at"]),
        finished_at=to_datetime(row["finished_at"]),
        parent_id=row["parent_id"],
        root_id=row["root_id"],
        budget=read_budget(row),
        deadline=to_datetime(row["deadline"]),
        scheduled_for=to_datetime(row["scheduled_for"]),
        labels=read_labels(row["labels"]),
    )


def read_budget(row: Row) -> Budget | None:
    usd, each = row["budget_usd"], row["budget_usd_per_attempt"]
    budget = Budget(
        usd=None if usd is None else to_dollars(usd),
        usd_per_attempt=None if each is None else to_dollars(each),
        attempts=row["budget_attempts"],
    )
    return None if budget == Budget() else budget


def read_event(row: Row) -> Event:
    entity = row["entity"]
    return Event(
        seq=row["seq"],
        type=row["type"],
        run_id=row["run_id"],
        task_id=None if entity == row["run_id"] else entity,
        version=row["version"],
        source=row["from_status"],
        target=row["to_status"],
        attempt=row["attempt"],
        generation=row["generation"],
        actor=row["actor"],
        at=to_datetime(row["at"]),
        data=read_event_data(row["data"]),
    )


def _read_lease(row: Row) -> Lease | None:
    if row["lease_expires_at"] is None:
        return None
    return Lease(owner=row["worker"], expires_at=to_datetime(row["lease_expires_at"]))


def read_value(text: str | None) -> Any:  # noqa: ANN401 - JSON is any value
    return None if text is None or text == "null" else json.loads(text)


def read_needed_outputs(rows: Sequence[Row], parent: str | None = None) -> dict[str, Any]:
    """Read the outputs of needed tasks, by the names of their steps.

    Of several tasks of one name the one counts that has the same `parent` as the task that needs
    it; else a whole loop before its items, and of items the first.
    """
    if len(rows) > 1:
        rows = sorted(rows, key=lambda row: _distance(row, parent), reverse=True)
    return {row["step"] or row["id"]: read_value(row["output"]) for row in rows}


def _distance(row: Row, parent: str | None) -> tuple[int, bool, bool, int, str]:
    item, apart = row["item"], row["parent_id"] != row.get("around", parent)
    return (row.get("depth", 0), apart, item is not None, item or 0, row["id"])
