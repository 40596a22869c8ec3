"""The port to a database and its transactions, the URLs of stores, and waits with backoff."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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

# The name of the file that tells whose the folder of a store is.
IDENTITIES_FILE = "identities"

_POSTGRESQL = re.compile(r"postgres(?:ql)?://")
_SCHEME = re.compile(r"[a-z][a-z0-9+]{0,19}")


class Transaction(Protocol):
    """Named queries inside one transaction; `rows` are values in the declared column order."""

    def read(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> list[Row]: ...

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        """Run a transition, record its events, and return the changed rows."""

    def read_late(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> Callable[[], list[Row]]:
        """Read what the transaction does not depend on; the rows may be asked for later."""

    def send_ahead(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        """Send a statement that is expected to be asked for, so that nobody waits for it alone.

        The statement is then asked for with the same parameters. If it changed rows and is not
        asked for, the transaction is run again, and sends nothing ahead.
        """

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        """Run a transition that inserts `rows`, each of which begins with its id.

        Unless `some` may be kept out by a key, all are inserted: otherwise `Contended` is raised,
        at the latest by the commit.
        """

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        """Run a statement that writes but changes no status, and give the rows it returns."""

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        """Run a statement that changes no status; an error of it may be raised by a later call."""


class Database(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    @property
    def file(self) -> Path | None:
        """The SQLite file, which one transaction at a time can write; None on PostgreSQL."""

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        """Run `work` in a write transaction, from one thread at a time.

        `work` may be run again from its start after a rollback, so `work` changes nothing outside
        the transaction. Where another transaction has locked a row, `StoreBusy` is raised after
        `patience` seconds, or soon if none are given.
        """

    def dry_run(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a write transaction that is always rolled back, from any thread.

        `work` may be run again from its start. Other transactions cannot change the rows that it
        has written until it ends.
        """

    def view(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one read-only snapshot, from any thread."""

    def join(self, connection: object) -> Transaction:
        """Write in a transaction that the application began and will end."""

    def begin(self) -> AbstractContextManager[Any]:
        """A write transaction on a connection of its own, for the application to use."""

    def connect(self, *, lends: bool = False) -> KeptConnection[Any]:
        """A connection for one write transaction after another, all in one thread.

        With `lends`, code of the application gets it too.
        """

    def upgrade(self) -> None:
        """Apply the migrations that the store lacks; an error says why that cannot be done."""

    def find_stopped_holder(self) -> str | None:
        """The warning about a stopped process that keeps the SQLite file locked; None without."""

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Call `callback` once when the store's file is gone and its content is saved.

        If the file is gone already, the call comes at once. The function that is returned removes
        the callback.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class SqlDirectories:
    """The folders of the statements and of the migrations; tests have their own."""

    queries: Path = queries.DIRECTORY
    migrations: Path = migrations.DIRECTORY


@dataclass(frozen=True, kw_only=True)
class DriverPorts:
    """The ports and settings that a driver is opened with."""

    clock: Clock
    randomness: Randomness
    threads: Threads
    settings: Settings
    sql_directories: SqlDirectories


def check_url(url: str) -> None:
    """Refuse a URL that names no store, without opening anything."""
    if not is_postgresql(url):
        sqlite_path(url)


def is_postgresql(url: str) -> bool:
    return _POSTGRESQL.match(url) is not None


def sqlite_path(url: str) -> Path:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme != "sqlite":
        # The text before `://` is quoted only if it looks like a scheme: it may be a password.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class LateReply:
    """A reply that is read after the commit, or at the end of the transaction."""

    read: Callable[[], object]


def read_replies(replies: Sequence[Any]) -> list[Any]:
    """The replies to operations, when their transaction has been written."""
    return [each.read() if type(each) is LateReply else each for each in replies]


class Contended(Exception):
    """Another process was first: raised inside a transaction, which is then run again."""


class WronglyExpected(Contended):
    """A statement that was sent ahead changed what nobody asked for; no other process caused it."""


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The first wait and the longest, which waits double up to, and all waits together, in seconds.

    Every wait has a random part.
    """

    first: float
    longest: float
    total: float


class Patience:
    """The waits of one failure: made when the failure is first seen, and never used again."""

    def __init__(self, backoff: Backoff, clock: Clock, randomness: Randomness) -> None:
        self._backoff = backoff
        self._clock = clock
        self._randomness = randomness
        self._end = clock.monotonic() + backoff.total
        self._next = backoff.first

    def wait(self) -> bool:
        """Sleep once; False, without sleeping, when the total is used up."""
        left = self._end - self._clock.monotonic()
        if left <= 0:
            return False
        self._clock.sleep(min(left, self._next * (0.5 + self._randomness.random())))
        self._next = min(self._backoff.longest, self._next * 2)
        return True
