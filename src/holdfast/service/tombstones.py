"""What is left to tell of runs and tasks that were removed."""

from __future__ import annotations

from holdfast.service.views import View, present, tell_time
from holdfast.store.database import Row, Transaction


def view_tombstone(row: Row) -> View:
    """What is left of a run or task that was removed."""
    run = row["kind"] == "run"
    return present(
        id=row["entity"],
        workflow=row["name"] if run else None,
        workflow_version=row["version"],
        title=None if run else row["name"],
        key=row["key"],
        status=row["status"],
        created_at=tell_time(row["created_at"]),
        finished_at=tell_time(row["finished_at"]),
        removed_at=tell_time(row["removed_at"]),
    )


def tell_removed(tx: Transaction, identifier: str) -> str:
    """That it was there once, where a tombstone tells so."""
    for row in tx.read("tombstone_of", entity=identifier):
        return f"it was {row['status']}, and removed {tell_time(row['removed_at'])}: keep.runs"
    return ""
