"""Whole tables of a store, read past the engine by a connection of their own."""

from __future__ import annotations

from typing import Any, Protocol

import apsw
import psycopg
from psycopg.rows import dict_row

from holdfast.store.database import is_postgresql, sqlite_path

ORDER = {
    "holdfast_task": "id",
    "holdfast_run": "id",
    "holdfast_need": "task_id, need_id",
    "holdfast_effect": "task_id, epoch, name",
    "holdfast_signal": "id",
    "holdfast_schedule": "name",
    "holdfast_event": "seq",
    "holdfast_slot": "key",
    "holdfast_lease": "key",
    "holdfast_workflow": "name, version",
}

# What others refer to goes last.
REFERRED = ("holdfast_task", "holdfast_run", "holdfast_workflow")

Row = dict[str, Any]


class Tables(Protocol):
    def rows(self, table: str) -> list[Row]: ...

    def all_rows(self, *tables: str) -> list[list[Row]]:
        """The rows of each."""

    def empty(self) -> None: ...

    def close(self) -> None: ...


def open_tables(url: str) -> Tables:
    return PostgresqlTables(url) if is_postgresql(url) else SqliteTables(url)


class SqliteTables:
    def __init__(self, url: str) -> None:
        self._connection = apsw.Connection(str(sqlite_path(url)))
        self._connection.set_busy_timeout(10_000)

    def rows(self, table: str) -> list[Row]:
        cursor = self._connection.cursor()
        cursor.row_trace = _named
        return list(cursor.execute(_select(table)))

    def all_rows(self, *tables: str) -> list[list[Row]]:
        return [self.rows(table) for table in tables]

    def empty(self) -> None:
        with self._connection:
            self._connection.pragma("defer_foreign_keys", True)  # noqa: FBT003
            for table in ORDER:
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant

    def close(self) -> None:
        self._connection.close()


class PostgresqlTables:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def rows(self, table: str) -> list[Row]:
        return self._connection.execute(_select(table).encode()).fetchall()

    def all_rows(self, *tables: str) -> list[list[Row]]:
        # Sent together, and answered together: thousands of times in one test.
        with self._connection.pipeline():
            asked = [self._connection.execute(_select(table).encode()) for table in tables]
        return [each.fetchall() for each in asked]

    def empty(self) -> None:
        # DELETE, because TRUNCATE makes new files: slower by far for a few rows.
        with self._connection.pipeline():
            for table in (*(ORDER.keys() - set(REFERRED)), *REFERRED):
                self._connection.execute(f"DELETE FROM {table}".encode())  # noqa: S608 - a constant

    def close(self) -> None:
        self._connection.close()


def _select(table: str) -> str:
    return f"SELECT * FROM {table} ORDER BY {ORDER[table]}"  # noqa: S608 - constants


def _named(cursor: apsw.Cursor, row: tuple[object, ...]) -> Row:
    names = (column[0] for column in cursor.get_description())
    return dict(zip(names, row, strict=True))
