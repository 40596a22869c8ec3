"""A store that can be put back as it was, and compared whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.store.tables import DERIVED_TABLES
from tests.contract.raw_store import Raw, dump, raw, read_all
from tests.race.racers import eventually
from tests.stores import OTHERS

State = dict[str, list[dict[str, Any]]]

# In the order of their making: whatever refers to another comes after it.
_TABLES = """
SELECT relname AS name FROM pg_class
WHERE relkind = 'r' AND relnamespace = CAST('public' AS regnamespace) ORDER BY oid
"""


class Store(Protocol):
    """One store, entered while nobody uses it: as it is then is how it is put back."""

    def restore(self) -> None:
        """Put every row back as it was."""

    def settle(self) -> None:
        """Wait until a process that died has left nothing behind that would go by itself."""

    def read(self) -> State:
        """All rows of all tables."""


class SqliteStore:
    def __init__(self, url: str) -> None:
        self._url = url
        self._path = sqlite_path(url)
        self._copy = self._path.with_suffix(".copy")
        assert not self._beside("-wal").exists(), "a store is copied after everyone has left it"
        shutil.copyfile(self._path, self._copy)

    def restore(self) -> None:
        for suffix in ("-wal", "-shm"):
            self._beside(suffix).unlink(missing_ok=True)
        shutil.copyfile(self._copy, self._path)

    def settle(self) -> None:
        """The file system let go of its locks when the process ended."""

    def read(self) -> State:
        return _comparable(dump(self._url))

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


class PostgresqlStore:
    """Keeps copies of the tables in a schema beside them."""

    def __init__(self, run: Raw) -> None:
        self._run = run
        self._tables = [row["name"] for row in run(_TABLES)]
        run("CREATE SCHEMA copy")
        for table in self._tables:
            run(f"CREATE TABLE copy.{table} AS TABLE public.{table}")

    def restore(self) -> None:
        gone = [f"DELETE FROM {table}" for table in reversed(self._tables)]  # noqa: S608 - its own
        # What triggers have counted meanwhile is put back last.
        tables = sorted(self._tables, key=DERIVED_TABLES.__contains__)
        again = [f"DELETE FROM {table}" for table in DERIVED_TABLES]  # noqa: S608
        back = [
            f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM copy.{table}"  # noqa: S608
            for table in tables
        ]
        place = len(back) - len(again)
        self._run.each(["BEGIN", *gone, *back[:place], *again, *back[place:], "COMMIT"])

    def settle(self) -> None:
        await_sessions(self._run)

    def read(self) -> State:
        return _comparable(read_all(self._run))


def await_sessions(run: Raw) -> None:
    """A server ends the session of a process that died, soon but not at once."""
    assert eventually(lambda: run(OTHERS) == []), "a session outlived its process"


@contextmanager
def entered(url: str) -> Iterator[Store]:
    if not is_postgresql(url):
        # No connection is kept: a process that is the last to leave tidies the file up.
        yield SqliteStore(url)
        return
    with raw(url) as run:
        yield PostgresqlStore(run)


def _comparable(tables: State) -> State:
    """Number each row's events by themselves: a sequence leaves gaps, and a set has no order."""
    events = sorted(tables["holdfast_event"], key=lambda row: (row["entity"], int(row["seq"])))
    numbered = [
        row | {"seq": place}
        for _, own in groupby(events, key=lambda row: row["entity"])
        for place, row in enumerate(own)
    ]
    return tables | {"holdfast_event": numbered}


def differences(found: State, expected: State) -> list[str]:
    """The rows that only one of two states has, for people to read."""
    return [
        f"{sign} {table} {row}"
        for table in sorted(found.keys() | expected.keys())
        for sign, some, others in (
            ("+", found.get(table, []), expected.get(table, [])),
            ("-", expected.get(table, []), found.get(table, [])),
        )
        for row in some
        if row not in others
    ]
