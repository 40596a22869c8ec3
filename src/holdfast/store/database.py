"""The port to a database: write transactions, read-only views, migrations.

Bounded, jittered, growing waits for a database that is busy or away.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from holdfast.clock import Clock
from holdfast.errors import InvalidInput, StoreGone
from holdfast.randomness import Randomness
from holdfast.settings import Settings
from holdfast.store import migrations
from holdfast.store.application_connections import KeptConnection
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.queries import Rows
from holdfast.threads import Threads

T = TypeVar("T")
Row = dict[str, Any]

# The file by which a folder that keeps a store is known to its owner.
IDENTITIES_FILE = "identities"

_POSTGRESQL = re.compile(r"postgres(?:ql)?://")
_SCHEME = re.compile(r"[a-z][a-z0-9+]{0,19}")


class Transaction(Protocol):
    """Named queries inside one transaction; `rows` are values in the declared column order."""

    def read(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> list[Row]: ...

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        """Run a transition; its events are recorded, and what is returned is what happened."""

    def insert(self, query: str, /, *, rows: Rows) -> Callable[[], int]:
        """Run a transition that makes new rows, by the ids they begin with.

        What is given back tells how many it made, each with its event, and waits for that only when
        it is called. It is for who goes on only where it is as many as were given.
        """

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        """Run a statement that writes but changes no status, and give what it returns."""

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        """Run a statement that changes no status; its error may only show at a later call."""


class Database(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    @property
    def file(self) -> Path | None:
        """The file that one transaction at a time can write; None where many can write at once."""

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        """Run `work` in a write transaction, from one thread at a time.

        `work` may be run again from its start after a rollback, so it changes nothing else. Where
        another transaction has locked a row, `StoreBusy` comes soon, or after as many seconds.
        """

    def dry_run(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a write transaction that is rolled back in any case, from any thread.

        It may be run again from its start, and keeps others from what it writes while it lasts.
        """

    def view(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one read-only snapshot, from any thread."""

    def join(self, connection: object) -> Transaction:
        """Write in a transaction that the application began and will end."""

    def begin(self) -> AbstractContextManager[Any]:
        """A write transaction on a connection of its own, for the application to use."""

    def connect(self) -> KeptConnection[Any]:
        """The same for one transaction after another, all in one thread."""

    def upgrade(self) -> None:
        """Bring the schema up to the code, or say why that cannot be."""

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Call back once when the store's file is gone, and what it held saved: it may be already.

        What is returned ends that.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class SqlDirectories:
    """Where the SQL lives; tests bring their own."""

    queries: Path = queries.DIRECTORY
    migrations: Path = migrations.DIRECTORY


@dataclass(frozen=True, kw_only=True)
class DriverPorts:
    """What a driver is given from outside."""

    clock: Clock
    randomness: Randomness
    threads: Threads
    settings: Settings
    sql_directories: SqlDirectories


def check_url(url: str) -> None:
    """Refuse what names no store, without opening anything."""
    if not is_postgresql(url):
        sqlite_path(url)


def is_postgresql(url: str) -> bool:
    return _POSTGRESQL.match(url) is not None


def sqlite_path(url: str) -> Path:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme != "sqlite":
        # Nothing of what is no scheme: it may well be a password.
        known = _SCHEME.fullmatch(scheme) if separator else None
        what = f"{scheme!r} is not a database" if known else "this is no URL of a database"
        raise InvalidInput("url", f"{what}; use sqlite:///file.db or postgresql://…")
    if "?" in rest or "#" in rest:
        reason = "a path to a SQLite file has no options; write sqlite:///file.db without ? and #"
        raise InvalidInput("url", reason)
    if rest.strip("/") in {"", ":memory:"}:
        reason = "a durable store needs a file; use sqlite:///file.db (relative) or sqlite:////file"
        raise InvalidInput("url", reason)
    if not rest.startswith("/"):
        reason = "write sqlite:///file.db for a path from here, sqlite:////file.db from the root"
        raise InvalidInput("url", reason)
    return Path(rest[1:])


class Contended(Exception):
    """Another process was first; raised inside a transaction to begin it again."""


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Waits start near `first` seconds, double up to `longest`, and end `total` after the start."""

    first: float
    longest: float
    total: float


class Patience:
    """One stretch of waiting: made when trouble starts, thrown away when it is over."""

    def __init__(self, backoff: Backoff, clock: Clock, randomness: Randomness) -> None:
        self._backoff = backoff
        self._clock = clock
        self._randomness = randomness
        self._end = clock.monotonic() + backoff.total
        self._next = backoff.first

    def wait(self) -> bool:
        """Sleep once; False, without sleeping, when the patience is used up."""
        left = self._end - self._clock.monotonic()
        if left <= 0:
            return False
        self._clock.sleep(min(left, self._next * (0.5 + self._randomness.random())))
        self._next = min(self._backoff.longest, self._next * 2)
        return True
