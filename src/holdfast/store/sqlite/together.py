"""Many changed rows, told as one: each row of RETURNING costs the interpreter's lock."""

from __future__ import annotations

import json

import apsw

from holdfast.store.database import Row, Rows
from holdfast.store.queries import Query
from holdfast.store.transitions import CHANGED, NOTED, Together

# Fewer are told sooner by RETURNING.
MANY = 16
# So many large ones are still a text that memory has room for.
AT_ONCE = 128
_PREPARE = f"""
CREATE TABLE {CHANGED} (place INTEGER PRIMARY KEY, changed_id TEXT NOT NULL);
CREATE TEMP TRIGGER holdfast_task_changed AFTER UPDATE OF {NOTED} ON main.holdfast_task
BEGIN INSERT INTO holdfast_changed (changed_id) VALUES (NEW.id); END;
CREATE TEMP TRIGGER holdfast_run_changed AFTER UPDATE OF {NOTED} ON main.holdfast_run
BEGIN INSERT INTO holdfast_changed (changed_id) VALUES (NEW.id); END;
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

    def choose(
        self,
        connection: apsw.Connection,
        query: Query,
        rows: Rows | None,
        parameters: dict[str, object],
    ) -> Together | None:
        """The statements for a transition that may change many rows."""
        if query.together is None or _most(query, rows, parameters) < MANY:
            return None
        self._wanted = True
        return query.together if self._prepared is connection else None


def change(connection: apsw.Connection, together: Together, given: dict[str, object]) -> list[Row]:
    connection.execute(together.change, given)
    changed = connection.changes()
    if not changed:
        return []
    connection.execute(together.record, given)
    found: list[Row] = []
    for first in range(1, changed + 1, AT_ONCE):
        found += _tell(connection, together, given, first, min(changed, first + AT_ONCE - 1))
    connection.execute(_FORGET)
    return found


def _tell(
    connection: apsw.Connection, together: Together, given: dict[str, object], first: int, last: int
) -> list[Row]:
    """Those at some places; in halves where together they are longer than any text may be."""
    try:
        told = connection.execute(together.tell, {**given, "first": first, "last": last}).get
    except apsw.TooBigError:
        if first == last:
            raise
        middle = (first + last) // 2
        parts = ((first, middle), (middle + 1, last))
        return [row for part in parts for row in _tell(connection, together, given, *part)]
    return [dict(zip(together.names, row, strict=True)) for row in json.loads(str(told))]


def _most(query: Query, rows: Rows | None, parameters: dict[str, object]) -> int:
    """How many rows a statement may change, as far as its parameters tell."""
    if rows is not None:
        return len(rows)
    lists = [parameters.get(name) for name in query.lists]
    count = parameters.get("count")
    most = [len(each) for each in lists if isinstance(each, list | tuple)]
    return max([*most, count if isinstance(count, int) else 0])
