"""Many changed rows, told as one: each row of RETURNING costs the interpreter's lock."""

from __future__ import annotations

import json
from math import inf

import apsw

from holdfast.errors import StoreError
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import Query, Rows
from holdfast.store.sql_text.transitions import CHANGED, NOTED, Together

# Fewer are told sooner by RETURNING.
MANY = 16
# How many are told first; after that about as many as these characters hold, and never more than
# so many: who reads a text keeps all other threads waiting, and some may be larger than the first.
FIRST = 16
CHARACTERS = 1_000_000
MOST = 256
_PREPARE = f"""
CREATE TABLE IF NOT EXISTS {CHANGED} (place INTEGER PRIMARY KEY, changed_row INTEGER NOT NULL);
CREATE TEMP TRIGGER IF NOT EXISTS holdfast_task_changed
AFTER UPDATE OF {NOTED} ON main.holdfast_task
BEGIN INSERT INTO holdfast_changed (changed_row) VALUES (NEW.rowid); END;
CREATE TEMP TRIGGER IF NOT EXISTS holdfast_run_changed
AFTER UPDATE OF {NOTED} ON main.holdfast_run
BEGIN INSERT INTO holdfast_changed (changed_row) VALUES (NEW.rowid); END;
"""  # noqa: S608 - names of ours
_FORGET = f"DELETE FROM {CHANGED}"  # noqa: S608 - a name of ours


class Gathering:
    """Notes on a connection what is changed, from the transaction after the first that wants it."""

    def __init__(self) -> None:
        self._wanted = False
        self._prepared: apsw.Connection | None = None

    def begin(self, connection: apsw.Connection) -> None:
        """Before a transaction: a rollback would take away what was prepared inside."""
        if self._wanted and self._prepared is not connection:
            connection.execute(_PREPARE)
            self._prepared = connection

    def forget(self) -> None:
        self._prepared = None

    def choose(
        self,
        connection: apsw.Connection,
        query: Query,
        rows: Rows | None,
        parameters: dict[str, object],
    ) -> Together | None:
        """The statements for a transition that may change many rows."""
        if query.together is None or _most(rows, parameters) < MANY:
            return None
        self._wanted = True
        return query.together if self._prepared is connection else None


def change(connection: apsw.Connection, together: Together, given: dict[str, object]) -> list[Row]:
    connection.execute(together.change, given)
    changed = connection.changes()
    if not changed:
        return []
    connection.execute(together.record, given)
    if connection.changes() != changed:
        # A migration that made a table anew has taken the trigger with it.
        raise StoreError("SQLite: it was not noted which rows were changed; try it again")
    found: list[Row] = []
    part = FIRST
    while len(found) < changed:
        part = min(part, changed - len(found))
        places = {"holdfast_first": len(found) + 1, "holdfast_last": len(found) + part}
        try:
            told = str(connection.execute(together.tell, given | places).get)
        except apsw.TooBigError:
            if part == 1:
                raise
            part //= 2
            continue
        found += [dict(zip(together.names, row, strict=True)) for row in json.loads(told)]
        part = min(MOST, max(1, CHARACTERS * part // len(told)))
    connection.execute(_FORGET)
    return found


def _most(rows: Rows | None, parameters: dict[str, object]) -> float:
    """How many rows a statement may change: ids may be of others, that any number hangs on."""
    if rows is not None:
        return len(rows)
    count = parameters.get("count")
    return count if isinstance(count, int) else inf
