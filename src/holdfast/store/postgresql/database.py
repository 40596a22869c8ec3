"""The PostgreSQL database: a writer that reconnects, pooled views, migrations, and lost commits.

When a COMMIT is not answered, the server is asked for the outcome of its transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.clock import Clock
from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    StoreBusy,
    StoreError,
    StoreGone,
    StoreUnreachable,
    UnknownOutcome,
)
from holdfast.store import migrations
from holdfast.store.application_connections import KeptConnection
from holdfast.store.connection_pool import ConnectionPool, PoolSizes
from holdfast.store.database import (
    Backoff,
    Contended,
    DriverPorts,
    Patience,
    Row,
    Transaction,
    WronglyExpected,
)
from holdfast.store.fork_guard import OwningProcess
from holdfast.store.group_commit.deferred_entries import longest_deferral
from holdfast.store.migrations import AppliedMigration, Ledger, Migration
from holdfast.store.postgresql.commit_outcome import (
    SessionIdentity,
    mark_session,
    was_committed,
    was_committed_in,
)
from holdfast.store.postgresql.connection import (
    Connection,
    ConnectionLost,
    ServerAddress,
    describe_error,
    is_busy,
    is_retryable,
)
from holdfast.store.postgresql.joined_transaction import check_connection
from holdfast.store.postgresql.session import PostgresqlSession
from holdfast.store.postgresql.transaction import LateRead, PostgresqlTransaction
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.transitions import CommitProof

T = TypeVar("T")
logger = logging.getLogger(__name__)

# The seconds between two lines of the log about a server that is away.
TELL_EVERY = 10.0
# The number of the advisory lock for migrations: the letters of "holdfast".
_UPGRADE_LOCK = int.from_bytes(b"holdfast", "big")
_EXISTS = "SELECT to_regclass('holdfast_migration') IS NOT NULL AS yes"
_RECORD = """
INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (%s, %s, %s, %s)
"""
# Longer than most transactions hold a row, and short for the operations that wait for the writer.
LOCK_TIMEOUT = 0.25
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SET_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %(patience)s, true)"
_BEGIN_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresqlMigrator:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def applied(self) -> Sequence[AppliedMigration]:
        answer = self._connection.execute(_EXISTS).fetchone()
        if not answer or not answer["yes"]:
            return []
        found = self._connection.execute(migrations.APPLIED).fetchall()
        return [AppliedMigration(**row) for row in found]

    def run_exclusively(self, work: Callable[[Ledger], T]) -> T:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_UPGRADE_LOCK,))
            self._connection.execute(migrations.TABLE)
            return work(self)

    def apply(self, migration: Migration) -> None:
        # Unprepared and without parameters: a file has many statements, and may contain %.
        self._connection.execute(migration.text.encode(), prepare=False)
        record = (migration.number, migration.name, migration.checksum, self._clock.now())
        self._connection.execute(_RECORD, record)


class PostgresqlDatabase:
    dialect: Dialect = "postgresql"
    file = None

    def __init__(self, url: str, ports: DriverPorts) -> None:
        settings = ports.settings
        self._address = ServerAddress(url)
        self._ports = ports
        self._owner = OwningProcess()
        self._queries: Mapping[str, queries.Query] = queries.load(
            self.dialect, ports.sql_directories.queries
        )
        self._away_backoff = Backoff(first=0.05, longest=2.0, total=settings.patience)
        self._contended_backoff = Backoff(first=0.002, longest=0.25, total=settings.patience)
        self._told_at = -inf
        sizes = PoolSizes.of(settings.connections)
        pooled: dict[str, Any] = {
            "threads": ports.threads,
            "clock": ports.clock,
            "patience": settings.patience,
        }
        self._views = ConnectionPool(
            lambda: PostgresqlSession(self._address.connect_view()),
            close=PostgresqlSession.close,
            usable=lambda session: session.at_rest,
            most=sizes.views,
            what="views",
            **pooled,
        )
        self._transactions = ConnectionPool(
            lambda: self._retry_after_loss(self._address.connect),
            close=psycopg.Connection.close,
            usable=lambda connection: connection.info.transaction_status == TransactionStatus.IDLE,
            most=sizes.transactions,
            what="transactions",
            refuses_holders=True,
            **pooled,
        )
        try:
            self._writer = self._connect_writer()
        except ConnectionLost as error:
            raise make_unreachable(error) from None

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        tries = count()
        return self._retry_after_loss(
            lambda: self._transact(work, patience, sends_ahead=next(tries) == 0)
        )

    def dry_run(self, work: Callable[[Transaction], T]) -> T:
        return self._retry_after_loss(lambda: self._dry_run(work))

    def view(self, work: Callable[[Transaction], T]) -> T:
        return self._retry_after_loss(lambda: self._view(work))

    def join(self, connection: object) -> Transaction:
        return PostgresqlTransaction(check_connection(connection), self._queries, self._ports.clock)

    def begin(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        # A connection of its own, whose settings the application may change.
        return self.connect().begin(fresh=True)

    def connect(self, *, lends: bool = False) -> KeptConnection[psycopg.Connection[Any]]:
        return KeptConnection(
            self._transactions,
            transaction=psycopg.Connection.transaction,
            usable=lambda connection: not connection.closed,
            can_commit=lambda connection: (
                connection.info.transaction_status == TransactionStatus.INTRANS
            ),
            lends=lends,
        )

    def upgrade(self) -> None:
        known = migrations.load(self.dialect, self._ports.sql_directories.migrations)
        # Safe to begin again wherever it broke off: each step first reads the applied migrations.
        self._retry_after_loss(lambda: self._upgrade(known))

    def find_stopped_holder(self) -> None:
        """A server lets its clients stop; none of them has a file locked."""

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        # There is no file that could be gone; if the server is away, each call fails by itself.
        del callback
        return lambda: None

    def close(self) -> None:
        # A forked child that closed the connections would end its parent's sessions.
        if self._owner.is_current():
            self._views.close()
            self._transactions.close()
            self._writer.close()

    def _retry_after_loss(self, work: Callable[[], T]) -> T:
        """Run `work`, and again after a failure that left nothing behind and may not come again."""
        self._owner.check()
        away: Patience | None = None
        contended: Patience | None = None
        while True:
            try:
                return work()
            except ConnectionLost as error:
                if away is not None:
                    self._tell_of_loss(error)
                away = away or self._patience(self._away_backoff)
                if not away.wait():
                    raise make_unreachable(error) from None
            except WronglyExpected:
                # The next try sends nothing ahead, so that this happens once.
                continue
            except psycopg.DataError as error:
                raise InvalidInput("value", f"PostgreSQL: {describe_error(error)}") from None
            except (psycopg.Error, Contended) as error:
                if is_busy(error):
                    settings = self._ports.settings
                    raise StoreBusy(
                        "PostgreSQL: another transaction holds a key or a counter that this needs, "
                        f"and has not ended within {longest_deferral(settings):g} s; "
                        "end it, and try again"
                    ) from None
                contended = contended or self._patience(self._contended_backoff)
                if not is_retryable(error) or not contended.wait():
                    # Without the original error, whose DETAIL quotes rows.
                    raise StoreError(f"PostgreSQL: {describe_error(error)}") from None

    def _tell_of_loss(self, error: ConnectionLost) -> None:
        """Log why calls wait for the server, once in a while."""
        now = self._ports.clock.monotonic()
        if now >= self._told_at + TELL_EVERY:
            self._told_at = now
            patience = self._ports.settings.patience
            logger.warning("PostgreSQL is asked again for up to %g s: %s", patience, error)

    def _patience(self, pace: Backoff) -> Patience:
        return Patience(pace, self._ports.clock, self._ports.randomness)

    def _upgrade(self, known: Sequence[migrations.Migration]) -> None:
        connection = self._address.connect()
        try:
            migrations.upgrade(PostgresqlMigrator(connection, self._ports.clock), known)
        except psycopg.Error as error:
            if connection.closed:
                raise ConnectionLost(describe_error(error)) from error
            raise
        finally:
            connection.close()

    def _connected_writer(self) -> PostgresqlSession:
        if self._writer.lost:
            self._writer.close()
            self._writer = self._connect_writer()
        return self._writer

    def _connect_writer(self) -> PostgresqlSession:
        session = PostgresqlSession(self._address.connect_writer(LOCK_TIMEOUT))
        with session.notice_loss():
            self._writer_identity = mark_session(session)
        return session

    def _transact(
        self, work: Callable[[Transaction], T], patience: float | None, *, sends_ahead: bool
    ) -> T:
        session = self._connected_writer()
        transaction = PostgresqlTransaction(
            session, self._queries, self._ports.clock, pipelined=True, sends_ahead=sends_ahead
        )
        with session.notice_loss():
            session.execute(_BEGIN)
            if patience is not None:
                session.execute(_SET_LOCK_TIMEOUT, {"patience": f"{round(patience * 1_000)}ms"})
            result = work(transaction)
            transaction.refuse_unexpected_changes()
            xid = transaction.xid()
        try:
            session.commit()
        except psycopg.Error as error:
            session.recover_from(error)
            if not session.lost:
                raise
            if not self._was_committed(xid, transaction.proofs(), error):
                raise ConnectionLost(describe_error(error)) from error
            self._settle_late_reads(transaction.late_reads, self._read_again)
        else:
            self._settle_late_reads(transaction.late_reads, LateRead.__call__)
        return result

    def _read_again(self, late: LateRead) -> list[Row]:
        """Read what was answered together with a COMMIT, if the answer to both was lost."""
        return self.view(lambda tx: tx.read(late.query, rows=late.given, **late.parameters))

    def _settle_late_reads(
        self, late_reads: Sequence[LateRead], read: Callable[[LateRead], list[Row]]
    ) -> None:
        """Read the rows of late reads; an error is kept for those who ask for the rows.

        The transaction is committed: an error must not fail it, and must not have it run again.
        """
        failure: UnknownOutcome | None = None
        for late in late_reads:
            if failure is None:
                try:
                    late.found = read(late)
                except (psycopg.Error, HoldfastError) as error:
                    why = describe_error(error) if isinstance(error, psycopg.Error) else error
                    failure = UnknownOutcome(
                        f"it was committed, and what it found cannot be read: {why}"
                    )
            late.error = failure

    def _dry_run(self, work: Callable[[Transaction], T]) -> T:
        settings, clock = self._ports.settings, self._ports.clock
        connection = self._transactions.take(fresh=True)
        try:
            patience = longest_deferral(settings)
            session = PostgresqlSession(self._address.set_up_writer(connection, patience))
            with session.notice_loss():
                session.execute(_BEGIN)
                result = work(PostgresqlTransaction(session, self._queries, clock, pipelined=True))
                # Of statements whose answers nobody asked for, one may have failed.
                session.end_reading()
            session.roll_back()
        finally:
            self._transactions.give_back(connection, keep=False)
        return result

    def _was_committed(
        self, xid: str | None, proofs: Sequence[CommitProof], error: psycopg.Error
    ) -> bool:
        if xid is None and not proofs:
            # Nothing was written.
            return False
        lost: SessionIdentity = self._writer_identity

        def ask() -> bool | None:
            session = self._connected_writer()
            with session.notice_loss():
                if xid is None:
                    return was_committed_in(session, lost, proofs)
                answer = was_committed(session, xid, proofs)
                session.end_reading()
                return answer

        patience = self._patience(self._contended_backoff)
        try:
            while (answer := self._retry_after_loss(ask)) is None:
                if not patience.wait():
                    raise UnknownOutcome("the server still has it in progress")
        except StoreError as second:
            raise UnknownOutcome(
                f"a COMMIT went unanswered ({describe_error(error)}), "
                f"and the server cannot be asked what became of it: {second}"
            ) from second
        return answer

    def _view(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._views.borrow() as session, session.notice_loss():
                session.execute(_BEGIN_VIEW)
                clock = self._ports.clock
                result = work(PostgresqlTransaction(session, self._queries, clock))
                session.commit()
                return result
        except ConnectionLost:
            self._views.discard()
            raise


def make_unreachable(error: ConnectionLost) -> StoreUnreachable:
    return StoreUnreachable(
        f"PostgreSQL does not answer: {error}; is the server running, and is the URL right?"
    )
