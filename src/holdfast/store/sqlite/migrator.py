"""Applies migrations to a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw

from holdfast.clock import Clock
from holdfast.store import migrations
from holdfast.store.migrations import Applied, Ledger, Migration

T = TypeVar("T")

_EXISTS = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'"
_RECORD = "INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"


class SqliteMigrator:
    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def applied(self) -> Sequence[Applied]:
        if self._connection.execute(_EXISTS).fetchone() is None:
            return []
        found: list[tuple[Any, ...]] = self._connection.execute(migrations.APPLIED).fetchall()
        return [Applied(number=row[0], name=row[1], checksum=row[2]) for row in found]

    def exclusively(self, work: Callable[[Ledger], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.execute(migrations.TABLE)
            result = work(self)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return result

    def apply(self, migration: Migration) -> None:
        for _ in self._connection.execute(migration.text):
            pass
        record = (migration.number, migration.name, migration.checksum, self._clock.now())
        self._connection.execute(_RECORD, record)
