"""Bulk changes: many changed rows are read back as one text.

For each row of RETURNING, SQLite hands over the interpreter's lock.
"""

from __future__ import annotations

import json
from math import inf

import apsw

from holdfast.errors import StoreError
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import Query, Rows
from holdfast.store.sql_text.transitions import CHANGED, NOTED, BulkChange

# Fewer rows are read faster by RETURNING.
BULK_MINIMUM = 16
# The rows of the first text; then about as many as fit into these characters, up to a limit. While
# a text is parsed all other threads wait, and later rows may be larger than the first.
FIRST_PAGE = 16
PAGE_CHARACTERS = 1_000_000
LARGEST_PAGE = 256
_CREATE_NOTES = f"""
CREATE TABLE IF NOT EXISTS {CHANGED} (place INTEGER PRIMARY KEY, changed_row INTEGER NOT NULL);
CREATE TEMP TRIGGER IF NOT EXISTS holdfast_task_changed
AFTER UPDATE OF {NOTED} ON main.holdfast_task
BEGIN INSERT INTO holdfast_changed (changed_row) VALUES (NEW.rowid); END;
CREATE TEMP TRIGGER IF NOT EXISTS holdfast_run_changed
AFTER UPDATE OF {NOTED} ON main.holdfast_run
BEGIN INSERT INTO holdfast_changed (changed_row) VALUES (NEW.rowid); END;
"""  # noqa: S608 - names of ours
_CLEAR_NOTES = f"DELETE FROM {CHANGED}"  # noqa: S608 - a name of ours


class ChangedRowNotes:
    """The ids of changed rows, noted by triggers on one connection.

    The triggers are made before the transaction after the first that would have used them.
    """

    def __init__(self) -> None:
        self._wanted = False
        self._prepared: apsw.Connection | None = None

    def begin(self, connection: apsw.Connection) -> None:
        """Make the triggers before a transaction: a rollback would remove them with it."""
        if self._wanted and self._prepared is not connection:
            connection.execute(_CREATE_NOTES)
            self._prepared = connection

    def forget(self) -> None:
        self._prepared = None

    def choose_bulk_change(
        self,
        connection: apsw.Connection,
        query: Query,
        rows: Rows | None,
        parameters: dict[str, object],
    ) -> BulkChange | None:
        """The bulk change for a transition that may change many rows; None where there is none."""
        if query.bulk_change is None or _most_rows(rows, parameters) < BULK_MINIMUM:
            return None
        self._wanted = True
        return query.bulk_change if self._prepared is connection else None


def run_bulk_change(
    connection: apsw.Connection, bulk_change: BulkChange, given: dict[str, object]
) -> list[Row]:
    connection.execute(bulk_change.change, given)
    changed = connection.changes()
    if not changed:
        return []
    connection.execute(bulk_change.record, given)
    if connection.changes() != changed:
        # A migration that made a table anew has removed its trigger.
        raise StoreError("SQLite: it was not noted which rows were changed; try it again")
    found: list[Row] = []
    page = FIRST_PAGE
    while len(found) < changed:
        page = min(page, changed - len(found))
        places = {"holdfast_first": len(found) + 1, "holdfast_last": len(found) + page}
        try:
            text = str(connection.execute(bulk_change.read_back, given | places).get)
        except apsw.TooBigError:
            if page == 1:
                raise
            page //= 2
            continue
        found += [dict(zip(bulk_change.names, row, strict=True)) for row in json.loads(text)]
        page = min(LARGEST_PAGE, max(1, PAGE_CHARACTERS * page // len(text)))
    connection.execute(_CLEAR_NOTES)
    return found


def _most_rows(rows: Rows | None, parameters: dict[str, object]) -> float:
    """The most rows that a statement may change; an id may stand for any number of rows."""
    if rows is not None:
        return len(rows)
    count = parameters.get("count")
    return count if isinstance(count, int) else inf
