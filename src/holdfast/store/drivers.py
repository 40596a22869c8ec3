"""Drivers: a URL is opened as the database or the notifier that it names."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.clock import Clock
from holdfast.randomness import Randomness
from holdfast.settings import Settings
from holdfast.store.database import (
    Database,
    DriverPorts,
    SqlDirectories,
    is_postgresql,
    sqlite_path,
)
from holdfast.store.notifier import Notifier
from holdfast.threads import Threads

# A database that has this table is a store of Holdfast.
STORE_TABLE = "holdfast_migration"


def open_database(  # noqa: PLR0913 - the ports of a program are named where it is put together
    url: str,
    *,
    clock: Clock,
    randomness: Randomness,
    threads: Threads,
    settings: Settings,
    sql_directories: SqlDirectories | None = None,
) -> Database:
    ports = DriverPorts(
        clock=clock,
        randomness=randomness,
        threads=threads,
        settings=settings,
        sql_directories=sql_directories or SqlDirectories(),
    )
    # The drivers are imported here: psycopg is slow to import, and not installed for SQLite alone.
    if is_postgresql(url):
        from holdfast.store.postgresql.database import PostgresqlDatabase  # noqa: PLC0415

        return PostgresqlDatabase(url, ports)
    path = sqlite_path(url)
    from holdfast.store.sqlite.database import SqliteDatabase  # noqa: PLC0415

    return SqliteDatabase(path, ports)


def open_notifier(
    url: str,
    database: Database,
    *,
    randomness: Randomness,
    threads: Threads,
    settings: Settings,
) -> Notifier:
    if is_postgresql(url):
        from holdfast.store.notifiers.postgresql import PostgresqlNotifier  # noqa: PLC0415

        return PostgresqlNotifier(url, randomness, threads)
    from holdfast.store.notifiers.sqlite import SqliteNotifier  # noqa: PLC0415
    from holdfast.store.sqlite.database import SqliteDatabase  # noqa: PLC0415

    if not isinstance(database, SqliteDatabase):
        raise TypeError(f"{url} is a SQLite file, and {database!r} is not open on one")
    return SqliteNotifier(database, threads, settings)


def list_tables(url: str) -> Collection[str] | None:
    """The tables of a database that exists; None where only opening it as a store can tell."""
    if is_postgresql(url):
        from holdfast.store.postgresql.tables import read_table_names  # noqa: PLC0415

        return read_table_names(url)
    from holdfast.store.sqlite.tables import read_table_names as read_file  # noqa: PLC0415

    return read_file(sqlite_path(url))
