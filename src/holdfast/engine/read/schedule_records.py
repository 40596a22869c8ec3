"""Records of schedules, apart from other records because the rules of cron are slow to load."""

from __future__ import annotations

import json

from holdfast.engine.read.records import UNREADABLE_ERRORS, read_value
from holdfast.model.cron_ticks import MissedTicks
from holdfast.model.moment import to_datetime
from holdfast.model.schedule import Schedule
from holdfast.store.database import Row


def read_schedule(row: Row) -> Schedule:
    return Schedule(
        name=row["name"],
        cron=row["cron"],
        zone=row["zone"],
        missed=_read_missed(row["missed"]),
        workflow=row["workflow"],
        task=_read_function(row["template"]) if row["workflow"] is None else None,
        input=read_value(row["input"]),
        run_id=row["run_id"],
        next_at=to_datetime(row["next_at"]),
        last_at=to_datetime(row["last_at"]),
        last_error=row["last_error"],
        version=row["version"],
        created_at=to_datetime(row["created_at"]),
    )


def _read_missed(policy: str) -> MissedTicks | str:
    try:
        return MissedTicks(policy)
    except ValueError:
        return policy


def _read_function(template: str) -> str | None:
    """Read what a schedule calls; an unreadable schedule reports its problem at its next tick."""
    try:
        fields = json.loads(template)
        return str(fields["step"] or fields["title"])
    except UNREADABLE_ERRORS:
        return None
