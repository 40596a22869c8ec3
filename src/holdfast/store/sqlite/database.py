"""The database in a SQLite file: a writer connection, read-only connections, and migrations."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
from holdfast.model.advice import Action, AdviceText, advise
from holdfast.stop_signals import write_transactions
from holdfast.store import migrations
from holdfast.store.application_connections import KeptConnection, unwrap_connection
from holdfast.store.connection_pool import ConnectionPool, PoolSizes
from holdfast.store.database import Contended, DriverPorts, Transaction
from holdfast.store.deadlocks import note_open_transaction, refuse_second_transaction
from holdfast.store.fork_guard import (
    OwningProcess,
    note_closed_file,
    note_open_file,
    refuse_inherited_file,
)
from holdfast.store.migrations import AppliedMigration, Ledger, Migration
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.transitions import CommitProof
from holdfast.store.sqlite.connection import (
    Checkpoints,
    connect,
    create_file,
    refuse_unsafe_version,
)
from holdfast.store.sqlite.file_identity import FileIdentity
from holdfast.store.sqlite.foreign_commits import ForeignCommits
from holdfast.store.sqlite.lock_waits import LockWait, LockWaits
from holdfast.store.sqlite.saved_copy import refuse_lost_store
from holdfast.store.sqlite.transaction import Catalogue, SqliteTransaction

if TYPE_CHECKING:
    from holdfast.store.sqlite.lock_holder import LockHolder

T = TypeVar("T")
logger = logging.getLogger(__name__)

_EXISTS = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'"
_RECORD = "INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
# The errors by which SQLite says that the disk takes no more.
_NOT_WRITTEN = {
    apsw.SQLITE_FULL,
    apsw.SQLITE_IOERR_WRITE,
    apsw.SQLITE_IOERR_FSYNC,
    apsw.SQLITE_IOERR_DIR_FSYNC,
    apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_SHMSIZE,
}
_FIND_PROOF = """
SELECT 1 FROM holdfast_event WHERE (entity, version, at, type)
  = (:entity, :version, COALESCE(:at, at), COALESCE(:type, type))
"""
_SECOND_LIBRARY = (
    "is on the standard library's sqlite3: two SQLite libraries on one file in one process do not "
    "see each other's locks, and both their commits succeed; use `with hf.transaction() as "
    "connection`"
)
_LONG_TRANSACTION = (
    "a transaction on %s was open for %.1f s: nobody could renew a lease meanwhile, and what runs "
    "under one is lost, and runs again, after %g s; end such transactions sooner"
)


def _is_of_second_library(connection: object) -> bool:
    # A connection of this library comes from a program that has imported it.
    library = sys.modules.get("sqlite3")
    if library is not None and isinstance(connection, library.Connection):
        return True
    return type(connection).__module__.startswith(("aiosqlite.", "aiosqlite"))


class SqliteMigrator:
    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def applied(self) -> Sequence[AppliedMigration]:
        if self._connection.execute(_EXISTS).fetchone() is None:
            return []
        found: list[tuple[Any, ...]] = self._connection.execute(migrations.APPLIED).fetchall()
        return [AppliedMigration(number=row[0], name=row[1], checksum=row[2]) for row in found]

    def run_exclusively(self, work: Callable[[Ledger], T]) -> T:
        with write_transactions.note():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute(migrations.TABLE)
                result = work(self)
                self._connection.execute("COMMIT")
            finally:
                _roll_back(self._connection)
        return result

    def apply(self, migration: Migration) -> None:
        for _ in self._connection.execute(migration.text):
            pass
        record = (migration.number, migration.name, migration.checksum, self._clock.now())
        self._connection.execute(_RECORD, record)


class SqliteDatabase:
    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, ports: DriverPorts, *, vfs: str | None = None) -> None:
        refuse_unsafe_version(apsw.sqlite_lib_version())
        self._path = path.absolute()
        # Resolved, so that a file that is open by two names is known to be one file.
        self.file = path.resolve()
        self._vfs = vfs
        self._ports = ports
        self._owner = OwningProcess()
        refuse_inherited_file(self._path)
        known = queries.load(self.dialect, ports.sql_directories.queries)
        self._catalogue = Catalogue(queries=known, columns={}, clock=ports.clock)
        self.lock_waits = LockWaits(ports, self._describe_lock)
        self._checkpoints = Checkpoints()
        self.foreign_commits = ForeignCommits(ports.threads.lock())
        self._writer: apsw.Connection | None = None
        self._lent_connections: set[apsw.Connection] = set()
        self._identity = FileIdentity(self._path, ports.clock, ports.threads)
        sizes = PoolSizes.of(ports.settings.connections)
        pooled: dict[str, Any] = {
            "close": self._identity.close_connection,
            "usable": lambda connection: not connection.in_transaction,
            "threads": ports.threads,
            "clock": ports.clock,
            "patience": ports.settings.patience,
        }
        self._views: ConnectionPool[apsw.Connection] = ConnectionPool(
            lambda: self._open(read_only=True), most=sizes.views, what="views", **pooled
        )
        self._transactions: ConnectionPool[apsw.Connection] = ConnectionPool(
            lambda: self._retry_while_locked(self._open),
            most=sizes.transactions,
            what="transactions",
            **pooled,
        )
        refuse_lost_store(self._path)
        create_file(self._path)
        # Noted before the file is opened, so that no fork goes unnoticed.
        note_open_file(self._owner, self._path)
        try:
            self._retry_while_locked(
                lambda: self._identity.begin(partial(self._connect, read_only=True))
            )
            self._retry_while_locked(self._open_writer)
        except BaseException:
            self.close()
            raise

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        # A writer has the whole file, so patience with single rows has no meaning here.
        del patience
        return self._retry_while_locked(lambda: self._use_writer(lambda: self._transact(work)))

    def dry_run(self, work: Callable[[Transaction], T]) -> T:
        refuse_second_transaction(self.file)
        return self._retry_while_locked(lambda: self._dry_run(work))

    def view(self, work: Callable[[Transaction], T]) -> T:
        return self._retry_while_locked(lambda: self._view(work))

    def join(self, connection: object) -> Transaction:
        if _is_of_second_library(unwrap_connection(connection)):
            raise InvalidInput("connection", _SECOND_LIBRARY)
        if not isinstance(connection, apsw.Connection) or connection not in self._lent_connections:
            raise InvalidInput("connection", "must come from hf.transaction() of this Holdfast")
        if not connection.in_transaction:
            raise InvalidInput("connection", "is in no transaction any more")
        return SqliteTransaction(connection, self._catalogue)

    def log_path(self) -> str:
        """The path of the write-ahead log: beside the file itself, not beside a link to it."""
        return self._retry_while_locked(lambda: self._open_writer().filename_wal)

    def begin(self) -> AbstractContextManager[apsw.Connection]:
        return self.connect().begin(fresh=True)

    def connect(self, *, lends: bool = False) -> KeptConnection[apsw.Connection]:
        return KeptConnection(
            self._transactions,
            transaction=self._lend_connection,
            usable=lambda connection: not connection.in_transaction,
            can_commit=lambda connection: connection.in_transaction,
            refuse=lambda: refuse_second_transaction(self.file),
            lends=lends,
        )

    @contextmanager
    def _lend_connection(self, connection: apsw.Connection) -> Iterator[None]:
        with write_transactions.note():
            yield from self._lend(connection)

    def _lend(self, connection: apsw.Connection) -> Iterator[None]:
        self._retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE"))
        self._lent_connections.add(connection)
        begun = self._ports.clock.monotonic()
        try:
            with note_open_transaction(self.file):
                yield
            self._retry_while_locked(lambda: connection.execute("COMMIT"))
            self._identity.check()
        finally:
            self._lent_connections.discard(connection)
            _roll_back(connection)
            self._warn_of_long_transaction(self._ports.clock.monotonic() - begun)

    def _warn_of_long_transaction(self, seconds: float) -> None:
        lease = self._ports.settings.lease
        if seconds > lease / 3:
            logger.warning(_LONG_TRANSACTION, self._path, seconds, lease)

    def upgrade(self) -> None:
        known = migrations.load(self.dialect, self._ports.sql_directories.migrations)
        clock = self._ports.clock
        # Safe to begin again wherever it broke off: each step first reads the applied migrations.
        self._retry_while_locked(
            lambda: self._use_writer(
                lambda: migrations.upgrade(SqliteMigrator(self._open_writer(), clock), known)
            )
        )

    def find_stopped_holder(self) -> str | None:
        holder = self._find_lock_holder()
        if holder is None or not (holder.stopped or holder.traced):
            return None
        return f"{holder} keeps {self._path} locked: nobody else can write; {holder.remedy}"

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        return self._identity.on_gone(callback)

    def close(self) -> None:
        # A forked child that closed the connections would drop its parent's locks on the file.
        if self._owner.is_current():
            self._views.close()
            self._transactions.close()
            self._close_writer()
            self._identity.close()
            note_closed_file(self._owner)

    def _retry_while_locked(self, work: Callable[[], T]) -> T:
        """Run `work`, and again for as long as another process has the file locked."""
        self._owner.check()
        wait: LockWait | None = None
        while True:
            try:
                return work()
            except (apsw.BusyError, Contended) as error:
                wait = wait or self.lock_waits.begin()
                if not wait.pause():
                    described = self._describe_lock(self._ports.settings.patience)
                    later = advise(Action.WAIT_LONGER)
                    raise StoreUnreachable(described + ", or " + later) from error
            except apsw.ReadOnlyError as error:
                self._identity.check()
                whose = "may you write it, and the folder that it is in?"
                raise StoreError(f"{self._path} cannot be written; {whose}") from error
            except apsw.Error as error:
                self._identity.check()
                if getattr(error, "extendedresult", None) in _NOT_WRITTEN:
                    raise StoreUnwritable(self._path, error) from error
                raise StoreError(f"SQLite: {error}") from error

    def _describe_lock(self, seconds: float) -> AdviceText:
        """Who has kept the file locked for so long, and what gives the lock back."""
        since = time.strftime("%H:%M:%S", time.localtime(self._ports.clock.now() / 1e6 - seconds))
        kept = f"has kept {self._path} locked for {seconds:.3g} seconds, since {since}"
        if self._lent_connections:
            return AdviceText(f"a transaction of this program {kept}; end it")
        holder = self._find_lock_holder()
        if holder is None or holder.pid == os.getpid():
            return AdviceText(f"another process, or a connection of this one, {kept}; stop it")
        return AdviceText(f"{holder} {kept}; {holder.remedy}")

    def _find_lock_holder(self) -> LockHolder | None:
        from holdfast.store.sqlite.lock_holder import find_lock_holder  # noqa: PLC0415 - rarely used

        return find_lock_holder(*self._identity.locked_files)

    def _open(self, *, read_only: bool = False) -> apsw.Connection:
        self._identity.check()
        connection = self._connect(read_only=read_only)
        try:
            self._identity.verify_connection(connection)
        except BaseException:
            self._identity.close_connection(connection)
            raise
        return connection

    def _connect(self, *, read_only: bool) -> apsw.Connection:
        clock = self._ports.clock
        return connect(self._path, clock, read_only=read_only, vfs=self._vfs)

    def _open_writer(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = self._open()
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            self._identity.close_connection(writer)

    def _use_writer(self, work: Callable[[], T]) -> T:
        """Run `work` with the writer's connection to itself, and note the commits of others."""
        with self.foreign_commits.lock:
            try:
                return work()
            finally:
                self.foreign_commits.end_transaction(self._writer)

    def _transact(self, work: Callable[[Transaction], T]) -> T:
        connection = self._open_writer()
        # Checked before, too: a commit that is refused after it was made is in the saved copy.
        self._identity.check_when_due()
        # The checkpoint comes before the transaction, so that no reply has to wait for it.
        self._checkpoints.step(connection)
        with write_transactions.note():
            return self._write(connection, work)

    def _write(self, connection: apsw.Connection, work: Callable[[Transaction], T]) -> T:
        connection.execute("BEGIN IMMEDIATE")
        self.foreign_commits.begin_transaction(connection)
        transaction = SqliteTransaction(connection, self._catalogue)
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
            if not self._was_committed(transaction.proofs, error):
                raise
        self._identity.check()
        return result

    def _dry_run(self, work: Callable[[Transaction], T]) -> T:
        with self._transactions.borrow() as connection, write_transactions.note():
            try:
                connection.execute("BEGIN IMMEDIATE")
                return work(SqliteTransaction(connection, self._catalogue))
            finally:
                _roll_back(connection)

    def _was_committed(self, proofs: Sequence[CommitProof], error: apsw.Error) -> bool:
        """Whether the file has a transaction whose COMMIT failed half-way."""
        if not proofs:
            raise UnknownOutcome(f"COMMIT failed and left no event to look for: {error}") from error
        try:
            self._close_writer()
            return self._retry_while_locked(lambda: self._find_any(proofs))
        except (apsw.Error, StoreError) as second:
            raise UnknownOutcome(
                f"COMMIT failed ({error}), and the file cannot be asked what is in it: {second}"
            ) from second

    def _find_any(self, proofs: Sequence[CommitProof]) -> bool:
        connection = self._open_writer()
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = any(
                connection.execute(_FIND_PROOF, proof.as_parameters()).fetchone() is not None
                for proof in proofs
            )
            # The failed COMMIT may have left frames at the end of the log, which a recovery would
            # take for committed. Any write overwrites them, and makes the answer final.
            connection.pragma("user_version", connection.pragma("user_version"))
            connection.execute("COMMIT")
        finally:
            _roll_back(connection)
        return found

    def _view(self, work: Callable[[Transaction], T]) -> T:
        self._identity.check_when_due()
        with self._views.borrow() as connection:
            connection.execute("BEGIN")
            try:
                return work(SqliteTransaction(connection, self._catalogue))
            finally:
                _roll_back(connection)


def _roll_back(connection: apsw.Connection) -> None:
    # After some errors SQLite has rolled back by itself.
    if connection.in_transaction:
        connection.execute("ROLLBACK")
