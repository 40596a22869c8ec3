"""Applies migrations to a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.clock import Clock
from holdfast.store import migrations
from holdfast.store.migrations import Applied, Ledger, Migration
from holdfast.store.postgresql.connection import Connection

T = TypeVar("T")

# Any number will do, as long as it is always this one: the letters of "holdfast".
_LOCK = int.from_bytes(b"holdfast", "big")
_EXISTS = "SELECT to_regclass('holdfast_migration') IS NOT NULL AS yes"
_RECORD = """
INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (%s, %s, %s, %s)
"""


class PostgresqlMigrator:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def applied(self) -> Sequence[Applied]:
        answer = self._connection.execute(_EXISTS).fetchone()
        if not answer or not answer["yes"]:
            return []
        found = self._connection.execute(migrations.APPLIED).fetchall()
        return [Applied(**row) for row in found]

    def exclusively(self, work: Callable[[Ledger], T]) -> T:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._connection.execute(migrations.TABLE)
            return work(self)

    def apply(self, migration: Migration) -> None:
        # As it stands and unprepared: a file holds many statements, and its % are its own.
        self._connection.execute(migration.text.encode(), prepare=False)
        record = (migration.number, migration.name, migration.checksum, self._clock.now())
        self._connection.execute(_RECORD, record)
