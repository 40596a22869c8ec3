"""Records of runs and events, and JSON values, read from rows of the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.model.budget import Budget, to_dollars
from holdfast.model.event import Event, read_event_data
from holdfast.model.labels import read_labels
from holdfast.model.moment import to_datetime
from holdfast.model.run import Run
from holdfast.model.status import Hold, RunStatus
from holdfast.store.database import Row

# The errors of reading a row that another release, or a person by hand, has written.
UNREADABLE_ERRORS = (
    *(HoldfastError, LookupError, TypeError, ValueError),
    *(OverflowError, RecursionError),
)


def describe_problem(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\x00", "")[:1_000]


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
