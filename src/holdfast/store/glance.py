"""What a database holds before it is opened as a store: looked at, and left as it is."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.store.database import is_postgresql, sqlite_path

MARK = "holdfast_migration"


def tables_of(url: str) -> Collection[str] | None:
    """The tables of a database that is there; nothing where only opening it can say what it is."""
    if is_postgresql(url):
        from holdfast.store.postgresql.glance import read_tables  # noqa: PLC0415

        return read_tables(url)
    from holdfast.store.sqlite.glance import read_tables as read_file  # noqa: PLC0415

    return read_file(sqlite_path(url))
