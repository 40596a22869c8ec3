"""Drivers that commit half-way, to show that it would be seen."""

from __future__ import annotations

from holdfast.store.database import Row
from holdfast.store.postgresql import database as postgresql
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sql_text.queries import Rows
from holdfast.store.sqlite import database as sqlite
from holdfast.store.sqlite.transaction import SqliteTransaction


class LeakySqliteTransaction(SqliteTransaction):
    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        changed = super().change(query, rows=rows, **parameters)
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")
        return changed

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        super().insert(query, rows=rows, some=some)
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")


class LeakyPostgresqlTransaction(PostgresqlTransaction):
    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        changed = super().change(query, rows=rows, **parameters)
        self._session.execute("COMMIT")
        self._session.execute("BEGIN")
        return changed

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        super().insert(query, rows=rows, some=some)
        self._session.execute("COMMIT")
        self._session.execute("BEGIN")


def leak() -> None:
    """From now on every transition of this process is a transaction of its own."""
    # Assigned by name: to a type checker a class is no place to put another.
    setattr(sqlite, "SqliteTransaction", LeakySqliteTransaction)  # noqa: B010
    setattr(postgresql, "PostgresqlTransaction", LeakyPostgresqlTransaction)  # noqa: B010
