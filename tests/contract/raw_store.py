"""A hand-held connection to a store, for what no operation of the engine would read or write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import apsw
import psycopg
from psycopg.rows import dict_row

from holdfast.store.database import is_postgresql, sqlite_path

REFUSED = (apsw.ConstraintError, psycopg.errors.CheckViolation)
Row = dict[str, Any]


class Raw(Protocol):
    postgresql: bool

    def __call__(self, statement: str, *values: object) -> list[Row]:
        """Run one statement, its parameters written as `?`, and commit it."""

    def each(self, statements: Sequence[str]) -> list[list[Row]]:
        """Run several that take no parameters, sent together; the rows of each."""


class _Sqlite:
    postgresql = False

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __call__(self, statement: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(statement, values)
        try:
            names = [column[0] for column in cursor.get_description()]
        except apsw.ExecutionCompleteError:
            return []
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def each(self, statements: Sequence[str]) -> list[list[Row]]:
        return [self(statement) for statement in statements]


class _Postgresql:
    postgresql = True

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def __call__(self, statement: str, *values: object) -> list[Row]:
        text = statement.replace("%", "%%").replace("?", "%s").encode()
        return _fetch(self._connection.execute(text, values))

    def each(self, statements: Sequence[str]) -> list[list[Row]]:
        with self._connection.pipeline():
            asked = [self._connection.execute(statement.encode()) for statement in statements]
        return [_fetch(cursor) for cursor in asked]


def _fetch(cursor: psycopg.Cursor[Row]) -> list[Row]:
    return cursor.fetchall() if cursor.description else []


@contextmanager
def raw(url: str) -> Iterator[Raw]:
    if is_postgresql(url):
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as server:
            yield _Postgresql(server)
        return
    file = apsw.Connection(str(sqlite_path(url)))
    try:
        file.set_busy_timeout(10_000)
        yield _Sqlite(file)
    finally:
        file.close()


def dump(url: str) -> dict[str, list[Row]]:
    """Every row of every table, in the same terms and the same order on both databases."""
    with raw(url) as run:
        return read_all(run)


def read_all(run: Raw) -> dict[str, list[Row]]:
    tables = _tables(run)
    read = run.each([f"SELECT * FROM {table}" for table in tables])  # noqa: S608 - of this store
    return {table: _plain(rows) for table, rows in zip(tables, read, strict=True)}


def _tables(run: Raw) -> list[str]:
    found = run(
        "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
        if run.postgresql
        else "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    return sorted(row["name"] for row in found)


def _plain(rows: Sequence[Row]) -> list[Row]:
    plain = [
        {name: int(value) if isinstance(value, bool) else value for name, value in row.items()}
        for row in rows
    ]
    return sorted(plain, key=lambda row: sorted((k, repr(v)) for k, v in row.items()))


def count_rows(url: str) -> dict[str, int]:
    return {table: len(rows) for table, rows in dump(url).items()}


def drop_guards(run: Raw) -> None:
    """Take away the triggers and checks of a store that is this test's alone."""
    for table in ("holdfast_task", "holdfast_run"):
        on = f" ON {table}" if run.postgresql else ""
        run(f"DROP TRIGGER {table}_guard{on}")
    if not run.postgresql:
        run("PRAGMA ignore_check_constraints = ON")
        return
    checks = "SELECT conname, conrelid::regclass::text AS of FROM pg_constraint WHERE contype = 'c'"
    for row in run(checks):
        if row["of"].startswith("holdfast_"):
            run(f"ALTER TABLE {row['of']} DROP CONSTRAINT {row['conname']}")
