"""Many changed rows, told as one: each row of RETURNING costs the interpreter's lock."""

from __future__ import annotations

import json
from math import inf

import apsw

from holdfast.errors import StoreError
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import Query, Rows
from holdfast.store.sql_text.transitions import CHANGED, NOTED, BulkChange

# Fewer are told sooner by RETURNING.
BULK_MINIMUM = 16
# How many are told first; after that about as many as these characters hold, and never more than
# so many: who reads a text keeps all other threads waiting, and some may be larger than the first.
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
    """Notes on a connection what is changed, from the transaction after the first that wants it."""

    def __init__(self) -> None:
        self._wanted = False
        self._prepared: apsw.Connection | None = None

    def begin(self, connection: apsw.Connection) -> None:
        """Before a transaction: a rollback would take away what was prepared inside."""
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
        """The statements for a transition that may change many rows."""
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
        # A migration that made a table anew has taken the trigger with it.
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
    """How many rows a statement may change: ids may be of others, that any number hangs on."""
    if rows is not None:
        return len(rows)
    count = parameters.get("count")
    return count if isinstance(count, int) else inf
