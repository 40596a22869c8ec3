"""The tables of a SQLite file, which stays as it is: no WAL, no schema."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import apsw

from holdfast.errors import StoreUnreachable

PATIENCE_MS = 5_000
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"


def read_tables(path: Path) -> Collection[str] | None:
    """Its tables; nothing where it cannot be read: to open it as a store says why."""
    try:
        # Not opened for reading alone, which could leave a log and its index behind.
        flags = apsw.SQLITE_OPEN_READWRITE
        with closing(apsw.Connection(str(path), flags=flags)) as connection:
            connection.set_busy_timeout(PATIENCE_MS)
            connection.pragma("query_only", True)  # noqa: FBT003
            return {str(row[0]) for row in connection.execute(_TABLES)}
    except apsw.BusyError as error:
        raise StoreUnreachable(f"another process keeps {path} locked; stop it") from error
    except apsw.Error:
        return None
