"""A store with a schema of three tables, for tests of what lies below the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.clock import Clock, SystemClock
from holdfast.ids import Ids
from holdfast.randomness import SystemRandomness
from holdfast.settings import Settings
from holdfast.store.database import Database, Row, SqlDirectories, Transaction
from holdfast.store.drivers import open_database
from holdfast.threads import SystemThreads

HOME = Path(__file__).parent / "small"
FILES = SqlDirectories(queries=HOME / "sql", migrations=HOME / "migrations")


@contextmanager
def opened(
    url: str,
    *,
    clock: Clock | None = None,
    patience: float = 20.0,
    files: SqlDirectories = FILES,
    upgrade: bool = True,
) -> Iterator[Database]:
    database = open_database(
        url,
        clock=clock or SystemClock(),
        randomness=SystemRandomness(),
        threads=SystemThreads(),
        settings=Settings(url=url, patience=patience),
        sql_directories=files,
    )
    try:
        if upgrade:
            database.upgrade()
        yield database
    finally:
        database.close()


def add(database: Database, *tasks: tuple[str, str]) -> list[Row]:
    return database.transact(lambda transaction: transaction.change("add_tasks", rows=tasks))


def tasks(database: Database) -> dict[str, str]:
    found = database.view(lambda transaction: transaction.read("tasks"))
    return {row["id"]: row["title"] for row in found}


def events(database: Database) -> list[Row]:
    return database.view(lambda transaction: transaction.read("events"))


def notes(database: Database) -> list[str]:
    found = database.view(lambda transaction: transaction.read("notes"))
    return [row["text"] for row in found]


def write_in_turns(url: str, transactions: int) -> None:
    """What a process does that shares its store with others: a task, then another title for it."""
    ids = Ids(SystemClock(), SystemRandomness())
    with opened(url) as database:
        for number in range(transactions):
            pair: Sequence[tuple[str, str]] = [(ids.task(), f"task {number}")]

            def work(transaction: Transaction, rows: Sequence[tuple[str, str]] = pair) -> None:
                transaction.change("add_tasks", rows=rows)
                transaction.change("rename_tasks", rows=rows)

            database.transact(work)


def upgrade(url: str, migrations: str) -> None:
    with opened(url, files=SqlDirectories(queries=FILES.queries, migrations=Path(migrations))):
        pass
