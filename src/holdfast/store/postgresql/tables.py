"""The tables of a PostgreSQL database: as plain rows, and their names where a store would be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.abc import Params, QueryNoTemplate
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composable, Identifier

from holdfast.errors import StoreError
from holdfast.store.postgresql.connection import ConnectionLost, ServerAddress, describe_error
from holdfast.store.postgresql.database import make_unreachable
from holdfast.store.tables import MIGRATION_TABLE, TABLE_PREFIX, Values

# Only tables in the schema of the store, whatever else the search path has.
_NAMES = """
SELECT relname FROM pg_class
 WHERE relkind IN ('r', 'p') AND starts_with(relname, %s)
   AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'holdfast_meta'::regclass)
"""
_COLUMNS = """
SELECT attname FROM pg_attribute
 WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_COUNTER = """
SELECT pg_get_serial_sequence(%(table)s, attname) FROM pg_attribute
 WHERE attrelid = to_regclass(%(table)s) AND attidentity <> ''
"""
_AT_ONCE = 1_000
# Includes a store in another schema of the search path, as the store is found there too.
_TABLES = """
SELECT relname FROM pg_class
 WHERE relkind IN ('r', 'p')
   AND (relnamespace = to_regnamespace(current_schema()::text)
        OR oid = to_regclass('holdfast_migration'))
"""


@contextmanager
def translate_server_errors() -> Iterator[None]:
    """Turn errors of the server into `StoreError`, without the rows that they quote."""
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL: {describe_error(error)}") from None


class PostgresqlTables:
    """The tables of a store, locked against writes of others until the transaction ends."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._read("SET LOCAL lock_timeout = '5s'")
        for name in sorted(self.names()):
            self._read(SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(Identifier(name)))

    def names(self) -> set[str]:
        return {str(row[0]) for row in self._read(_NAMES, (TABLE_PREFIX,))} - {MIGRATION_TABLE}

    def columns(self, table: str) -> list[str]:
        return [str(row[0]) for row in self._read(_COLUMNS, (table,))]

    def count(self, table: str) -> int:
        ((number,),) = self._read(SQL("SELECT count(*) FROM {}").format(Identifier(table)))
        return int(number)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Values]:
        text = SQL("SELECT {} FROM {}").format(_list_columns(columns), Identifier(table))
        with self._connection.cursor("holdfast_rows", row_factory=tuple_row) as cursor:
            cursor.itersize = _AT_ONCE
            yield from cursor.execute(text)

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        # COPY is one statement, and foreign keys are checked at its end.
        text = SQL("COPY {} ({}) FROM STDIN").format(Identifier(table), _list_columns(columns))
        with self._connection.cursor() as cursor, cursor.copy(text) as copy:
            for row in rows:
                copy.write_row(row)

    def clear(self, table: str) -> None:
        self._read(SQL("DELETE FROM {}").format(Identifier(table)))

    def counter(self, table: str) -> int | None:
        sequence = self._sequence(table)
        if sequence is None:
            return None
        ((last,),) = self._read(SQL("SELECT last_value FROM {}").format(sequence))
        return int(last)

    def set_counter(self, table: str, last: int) -> None:
        found = self._read(_COUNTER, {"table": table})
        self._read("SELECT setval(%s, %s)", (found[0][0], last))

    def _sequence(self, table: str) -> Composable | None:
        found = self._read(_COUNTER, {"table": table})
        return SQL(found[0][0]) if found else None

    def _read(self, text: QueryNoTemplate, values: Params | None = None) -> list[tuple[Any, ...]]:
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(text, values)
            return cursor.fetchall() if cursor.description else []


def _list_columns(columns: Sequence[str]) -> Composable:
    return SQL(", ").join(map(Identifier, columns))


def read_table_names(url: str) -> Collection[str]:
    try:
        with ServerAddress(url).connect() as connection:
            return {row["relname"] for row in connection.execute(_TABLES)}
    except ConnectionLost as error:
        raise make_unreachable(error) from None
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL: {describe_error(error)}") from None
