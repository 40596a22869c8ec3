"""One SQLite file: a writer connection, a few read-only ones, other processes beside them.

Applies migrations to a SQLite file.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast.clock import Clock
from holdfast.errors import (
    InvalidInput,
    StoreError,
    StoreGone,
    StoreUnreachable,
    StoreUnwritable,
    UnknownOutcome,
)
from holdfast.store import migrations
from holdfast.store.application_connections import Standing, driver_connection
from holdfast.store.connection_pool import Pool
from holdfast.store.database import Contended, Pace, Patience, Surroundings, Transaction
from holdfast.store.deadlocks import holding_store, refuse_second
from holdfast.store.fork_guard import HomeProcess, note_closed, note_open, refuse_inherited
from holdfast.store.migrations import Applied, Ledger, Migration
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.transitions import Mark
from holdfast.store.sqlite.bulk_changes import Gathering
from holdfast.store.sqlite.connection import Checkpoints, connect, create, refuse_unsafe
from holdfast.store.sqlite.file_identity import FileIdentity
from holdfast.store.sqlite.foreign_commits import Others
from holdfast.store.sqlite.saved_copy import refuse_lost
from holdfast.store.sqlite.transaction import Catalogue, SqliteTransaction

T = TypeVar("T")

_EXISTS = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'"
_RECORD = "INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"


class SqliteMigrator:
    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def applied(self) -> Sequence[Applied]:
        if self._connection.execute(_EXISTS).fetchone() is None:
            return []
        found: list[tuple[Any, ...]] = self._connection.execute(migrations.APPLIED).fetchall()
        return [Applied(number=row[0], name=row[1], checksum=row[2]) for row in found]

    def exclusively(self, work: Callable[[Ledger], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.execute(migrations.TABLE)
            result = work(self)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return result

    def apply(self, migration: Migration) -> None:
        for _ in self._connection.execute(migration.text):
            pass
        record = (migration.number, migration.name, migration.checksum, self._clock.now())
        self._connection.execute(_RECORD, record)


# What SQLite tells of a disk that takes no more.
_NOT_WRITTEN = {
    apsw.SQLITE_FULL,
    apsw.SQLITE_IOERR_WRITE,
    apsw.SQLITE_IOERR_FSYNC,
    apsw.SQLITE_IOERR_DIR_FSYNC,
    apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_SHMSIZE,
}
_FIND_MARK = """
SELECT 1 FROM holdfast_event WHERE (entity, version, at, type) = (:entity, :version, :at, :type)
"""


_SECOND_LIBRARY = (
    "is the standard library's sqlite3: two SQLite libraries on one file in one process do not see "
    "each other's locks, and both their commits succeed; use `with hf.transaction() as connection`"
)
_LONG = (
    "a transaction on %s was open for %.1f s: nobody could renew a lease meanwhile, and what runs "
    "under one is lost, and runs again, after %g s; end such transactions sooner"
)

logger = logging.getLogger(__name__)


class SqliteDatabase:
    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, surroundings: Surroundings, *, vfs: str | None = None) -> None:
        refuse_unsafe(apsw.sqlite_lib_version())
        self._path = path.absolute()
        # Whoever has it open under another name has the same file.
        self.file = path.resolve()
        self._vfs = vfs
        self._surroundings = surroundings
        self._home = HomeProcess()
        refuse_inherited(self._path)
        known = queries.load(self.dialect, surroundings.files.queries)
        self._catalogue = Catalogue(queries=known, columns={}, clock=surroundings.clock)
        self._pace = Pace(first=0.0005, longest=0.002, total=surroundings.settings.patience)
        self._checkpoints = Checkpoints()
        self._gathering = Gathering()
        self.others = Others(surroundings.threads.lock())
        self._writer: apsw.Connection | None = None
        self._given: set[apsw.Connection] = set()
        self._identity = FileIdentity(self._path, surroundings.clock, surroundings.threads)
        self._views = Pool(
            lambda: self._open(read_only=True),
            close=self._identity.close_connection,
            usable=lambda connection: not connection.in_transaction,
            lock=surroundings.threads.lock(),
            spare=surroundings.settings.view_connections,
        )
        refuse_lost(self._path)
        create(self._path)
        # Before it is opened, so that there is no moment at which a fork could go unnoticed.
        note_open(self._home, self._path)
        try:
            self._patiently(lambda: self._identity.begin(partial(self._connect, read_only=True)))
            self._patiently(self._opened_writer)
        except BaseException:
            self.close()
            raise

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        # Whoever writes has the whole file, and nobody can go before who waits for it.
        del patience
        return self._patiently(lambda: self._alone(lambda: self._transact(work)))

    def rehearse(self, work: Callable[[Transaction], T]) -> T:
        refuse_second(self.file)
        return self._patiently(lambda: self._rehearse(work))

    def view(self, work: Callable[[Transaction], T]) -> T:
        return self._patiently(lambda: self._view(work))

    def join(self, connection: object) -> Transaction:
        if isinstance(driver_connection(connection), sqlite3.Connection):
            raise InvalidInput("connection", _SECOND_LIBRARY)
        if not isinstance(connection, apsw.Connection) or connection not in self._given:
            raise InvalidInput("connection", "must come from hf.transaction() of this Holdfast")
        if not connection.in_transaction:
            raise InvalidInput("connection", "is in no transaction any more")
        return SqliteTransaction(connection, self._catalogue)

    def log(self) -> str:
        """Where SQLite keeps the write-ahead log: beside the file itself, not beside a link."""
        return self._patiently(lambda: self._opened_writer().filename_wal)

    def begin(self) -> AbstractContextManager[apsw.Connection]:
        return self.connect().once()

    def connect(self) -> Standing[apsw.Connection]:
        return Standing(
            lambda: self._patiently(self._open),
            transaction=self._lend,
            usable=lambda connection: not connection.in_transaction,
            sound=lambda connection: connection.in_transaction,
            close=self._identity.close_connection,
        )

    @contextmanager
    def _lend(self, connection: apsw.Connection) -> Iterator[None]:
        refuse_second(self.file)
        self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
        self._given.add(connection)
        begun = self._surroundings.clock.monotonic()
        try:
            with holding_store(self.file):
                yield
            self._patiently(lambda: connection.execute("COMMIT"))
            self._identity.check()
        finally:
            self._given.discard(connection)
            _roll_back(connection)
            self._warn_of(self._surroundings.clock.monotonic() - begun)

    def _warn_of(self, seconds: float) -> None:
        lease = self._surroundings.settings.lease
        if seconds > lease / 3:
            logger.warning(_LONG, self._path, seconds, lease)

    def upgrade(self) -> None:
        known = migrations.load(self.dialect, self._surroundings.files.migrations)
        clock = self._surroundings.clock
        # Safe to begin again wherever it broke off: each step first reads what was applied.
        self._patiently(
            lambda: self._alone(
                lambda: migrations.upgrade(SqliteMigrator(self._opened_writer(), clock), known)
            )
        )

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        return self._identity.on_gone(callback)

    def close(self) -> None:
        # A child that closed its parent's connections would drop the parent's locks on the file.
        if self._home.here():
            self._views.close()
            self._close_writer()
            self._identity.close()
            note_closed(self._home)

    def _patiently(self, work: Callable[[], T]) -> T:
        """Run `work` again for as long as it fails because another process has the file."""
        self._home.check()
        patience: Patience | None = None
        while True:
            try:
                return work()
            except (apsw.BusyError, Contended) as error:
                ports = self._surroundings
                patience = patience or Patience(self._pace, ports.clock, ports.randomness)
                if not patience.wait():
                    raise StoreUnreachable(self._kept_locked()) from error
            except apsw.ReadOnlyError as error:
                self._identity.check()
                whose = "may you write it, and the folder that it is in?"
                raise StoreError(f"{self._path} cannot be written; {whose}") from error
            except apsw.Error as error:
                self._identity.check()
                if getattr(error, "extendedresult", None) in _NOT_WRITTEN:
                    raise StoreUnwritable(self._path, error) from error
                raise StoreError(f"SQLite: {error}") from error

    def _kept_locked(self) -> str:
        kept = f"has kept {self._path} locked for {self._pace.total:g} seconds"
        if self._given:
            return f"a transaction of this program {kept}; end it, or raise the setting 'patience'"
        return f"another process {kept}; stop it, or raise the setting 'patience'"

    def _open(self, *, read_only: bool = False) -> apsw.Connection:
        self._identity.check()
        connection = self._connect(read_only=read_only)
        try:
            self._identity.verify(connection)
        except BaseException:
            self._identity.close_connection(connection)
            raise
        return connection

    def _connect(self, *, read_only: bool) -> apsw.Connection:
        clock = self._surroundings.clock
        return connect(self._path, clock, read_only=read_only, vfs=self._vfs)

    def _opened_writer(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = self._open()
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            self._identity.close_connection(writer)

    def _alone(self, work: Callable[[], T]) -> T:
        """Use the writer's connection, which is looked through at what others have committed."""
        with self.others.lock:
            try:
                return work()
            finally:
                self.others.end(self._writer)

    def _transact(self, work: Callable[[Transaction], T]) -> T:
        connection = self._opened_writer()
        # What is refused after its commit is in the saved copy all the same: the less the better.
        self._identity.check_again()
        # Before it and not after: whoever waits for the last one has its answer.
        self._checkpoints.step(connection)
        self._gathering.begin(connection)
        connection.execute("BEGIN IMMEDIATE")
        self.others.begin(connection)
        transaction = SqliteTransaction(connection, self._catalogue, self._gathering)
        try:
            result = work(transaction)
            transaction.check()
        except BaseException:
            _roll_back(connection)
            raise
        try:
            connection.execute("COMMIT")
        except apsw.Error as error:
            if connection.in_transaction:
                _roll_back(connection)
                raise
            if not self._was_committed(transaction.mark, error):
                raise
        self._identity.check()
        return result

    def _rehearse(self, work: Callable[[Transaction], T]) -> T:
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            return work(SqliteTransaction(connection, self._catalogue))
        finally:
            _roll_back(connection)
            self._identity.close_connection(connection)

    def _was_committed(self, mark: Mark | None, error: apsw.Error) -> bool:
        """Ask the file whether a transaction is in it whose COMMIT failed half-way."""
        if mark is None:
            raise UnknownOutcome(f"COMMIT failed and left no event to look for: {error}") from error
        try:
            self._close_writer()
            return self._patiently(lambda: self._find(mark))
        except (apsw.Error, StoreError) as second:
            raise UnknownOutcome(
                f"COMMIT failed ({error}), and the file cannot be asked what is in it: {second}"
            ) from second

    def _find(self, mark: Mark) -> bool:
        connection = self._opened_writer()
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = connection.execute(_FIND_MARK, mark.as_parameters()).fetchone() is not None
            # The failed COMMIT may have left its frames at the end of the log, where a recovery
            # would take them for committed. Any write goes over them and makes the answer final.
            connection.pragma("user_version", connection.pragma("user_version"))
            connection.execute("COMMIT")
        finally:
            _roll_back(connection)
        return found

    def _view(self, work: Callable[[Transaction], T]) -> T:
        self._identity.check_again()
        with self._views.borrow() as connection:
            connection.execute("BEGIN")
            try:
                return work(SqliteTransaction(connection, self._catalogue))
            finally:
                _roll_back(connection)


def _roll_back(connection: apsw.Connection) -> None:
    # After some failures SQLite has already rolled back by itself.
    if connection.in_transaction:
        connection.execute("ROLLBACK")
