"""Artifacts: what is recorded of the files that a task has kept."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.engine.read.pages import MAX_PAGE_SIZE, read_limit, task_id
from holdfast.model.text import clean_text
from holdfast.service.queries.views import View, format_time, without_nulls
from holdfast.store.database import Row, Transaction
from holdfast.worker.files.artifacts import is_artifact_name

# Artifacts are effects of these names; "!" is the character behind the blank.
_BEGIN, _END = "artifact ", "artifact!"


def view_page_of_artifacts(
    tx: Transaction, wanted: str, *, limit: int, after: str | None = None
) -> View:
    """`{items, next}`: at most `limit` artifacts in the order of their names, after a name.

    Of artifacts of one name the newest counts: a task that was done again writes them anew.
    """
    rows = tx.read(
        "artifacts_behind",
        task_id=task_id(wanted),
        name=f"{_BEGIN}{clean_text('after', after or '')}",
        end=_END,
        count=read_limit(limit),
    )
    following = rows[-1]["name"].removeprefix(_BEGIN) if len(rows) == limit else None
    return without_nulls(items=_view_artifacts(rows), next=following)


def view_artifacts(tx: Transaction, wanted: str) -> list[View]:
    """The artifacts of a task, as many as a page has."""
    items: list[View] = view_page_of_artifacts(tx, wanted, limit=MAX_PAGE_SIZE)["items"]
    return items


def find_artifact(tx: Transaction, wanted: str, name: str) -> View | None:
    """The artifact of a task under a name."""
    asked = {"task_id": task_id(wanted), "name": f"{_BEGIN}{name}"}
    found = _view_artifacts(tx.read("artifact_named", **asked))
    return found[0] if found else None


def _view_artifacts(rows: Sequence[Row]) -> list[View]:
    """The artifacts among some effects: a worker may give any effect a name like theirs."""
    return [view for row in rows if (view := _view_artifact(row)) is not None]


def _view_artifact(row: Row) -> View | None:
    name = row["name"].removeprefix(_BEGIN)
    match json.loads(row["value"]):
        case {"bytes": int() as size, "digest": str() as told} if (
            is_artifact_name(name) and not isinstance(size, bool) and size >= 0
        ):
            kept = {"attempt": row["attempt"], "kept_at": format_time(row["recorded_at"])}
            return {"name": name, "bytes": size, "digest": told, **kept}
    return None
