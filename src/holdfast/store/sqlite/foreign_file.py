"""Foreign files: SQLite files of older programs, whose tables are read whole and never written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from holdfast.errors import InvalidInput
from holdfast.store.sql_text import queries

DIRECTORY = Path(__file__).parent
BUSY_MILLISECONDS = 5_000

Row = dict[str, Any]


def read_foreign_tables(
    source: Path, wanted: Mapping[str, Collection[str]], optional: Collection[str] = ()
) -> dict[str, list[Row]]:
    """The rows of the `wanted` tables at one moment; each table must have the columns wanted.

    The names of tables are in lower case. An `optional` table may be missing, and is then empty.
    """
    tables: dict[str, list[Row]] = {}
    try:
        with closing(_open(source)) as connection, connection:
            for table, columns in wanted.items():
                tables[table] = _read(connection, table, columns, optional=table in optional)
    except (apsw.Error, UnicodeDecodeError) as error:
        raise InvalidInput("source", f"{source} cannot be read: {error}") from error
    return tables


def find_foreign_tables(source: Path, wanted: Collection[str]) -> list[str]:
    """The tables, of those wanted, that the file has."""
    columns = queries.load("sqlite", DIRECTORY)["older_columns"].text
    try:
        with closing(_open(source)) as connection:
            return [
                table for table in wanted if list(connection.execute(columns, {"table": table}))
            ]
    except (apsw.Error, UnicodeDecodeError) as error:
        raise InvalidInput("source", f"{source} cannot be read: {error}") from error


def _open(source: Path) -> apsw.Connection:
    if not source.is_file():
        raise InvalidInput("source", f"{source} is no file")
    connection = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def _read(
    connection: apsw.Connection, table: str, wanted: Collection[str], *, optional: bool
) -> list[Row]:
    known = queries.load("sqlite", DIRECTORY)
    rows = connection.execute(known["older_columns"].text, {"table": table})
    columns = [str(name) for (name,) in rows]
    if not columns:
        if optional:
            return []
        raise InvalidInput(f"source.{table}", "there is no such table in this file")
    if missing := [name for name in wanted if name not in columns]:
        raise InvalidInput(f"source.{table}", f"has no column {', '.join(missing)}")
    found = connection.execute(known[f"older_{table}"].text)
    return [dict(zip(columns, row, strict=True)) for row in found]
