"""The tables of a SQLite file: as plain rows, and their names in a file that may be no store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import apsw

from holdfast.errors import StoreError, StoreUnreachable
from holdfast.store.tables import MIGRATION_TABLE, TABLE_PREFIX, Values

_NAMES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, ?) = ?"
_COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
_REFERENCES = 'SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)'
# A table that has never numbered a row has no row in sqlite_sequence.
_COUNTER = """
SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = made.name), 0)
FROM sqlite_master AS made WHERE made.name = ? AND made.sql LIKE '%AUTOINCREMENT%'
"""
_FORGET_COUNTER = "DELETE FROM sqlite_sequence WHERE name = ?"
_SET_COUNTER = "INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)"
# Foreign keys are checked when the transaction ends.
_DEFER_CHECKS = "PRAGMA defer_foreign_keys = ON"
BUSY_MILLISECONDS = 5_000
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"


@contextmanager
def translate_sqlite_errors() -> Iterator[None]:
    """Turn errors of SQLite into `StoreError`."""
    try:
        yield
    except apsw.Error as error:
        raise StoreError(f"SQLite: {error}") from error


class SqliteTables:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        connection.execute(_DEFER_CHECKS)

    def names(self) -> set[str]:
        found = self._read(_NAMES, len(TABLE_PREFIX), TABLE_PREFIX)
        return {str(row[0]) for row in found} - {MIGRATION_TABLE}

    def order_by_references(self) -> list[str]:
        """The tables in an order in which each comes after the tables that its rows refer to."""
        needs = {
            name: {str(row[0]) for row in self._read(_REFERENCES, name)} for name in self.names()
        }
        ordered: list[str] = []
        while len(ordered) < len(needs):
            ordered += sorted(
                name
                for name, needed in needs.items()
                if name not in ordered and needed - {name} <= {*ordered}
            )
        return ordered

    def columns(self, table: str) -> list[str]:
        return [str(row[0]) for row in self._read(_COLUMNS, table)]

    def count(self, table: str) -> int:
        ((number,),) = self._read(f"SELECT count(*) FROM {_quoted(table)}")  # noqa: S608 - a name
        return int(cast("int", number))

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Values]:
        listed = ", ".join(map(_quoted, columns))
        yield from self._connection.execute(f"SELECT {listed} FROM {_quoted(table)}")  # noqa: S608 - names

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        listed, places = ", ".join(map(_quoted, columns)), ", ".join("?" * len(columns))
        text = f"INSERT INTO {_quoted(table)} ({listed}) VALUES ({places})"  # noqa: S608 - names
        self._connection.executemany(text, cast("Iterable[Any]", rows))

    def clear(self, table: str) -> None:
        self._connection.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608 - a name

    def counter(self, table: str) -> int | None:
        found = list(self._read(_COUNTER, table))
        return int(cast("int", found[0][0])) if found else None

    def set_counter(self, table: str, last: int) -> None:
        self._connection.execute(_FORGET_COUNTER, (table,))
        self._connection.execute(_SET_COUNTER, (last, table))

    def _read(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(text, values).fetchall()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_table_names(path: Path) -> Collection[str] | None:
    """The names of a file's tables, or None if it cannot be read; the file is not changed."""
    try:
        # Opened for writing, because opening for reading alone can leave a log and index behind.
        flags = apsw.SQLITE_OPEN_READWRITE
        with closing(apsw.Connection(str(path), flags=flags)) as connection:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.pragma("query_only", True)  # noqa: FBT003
            return {str(row[0]) for row in connection.execute(_TABLES)}
    except apsw.BusyError as error:
        raise StoreUnreachable(f"another process keeps {path} locked; stop it") from error
    except apsw.Error:
        return None
