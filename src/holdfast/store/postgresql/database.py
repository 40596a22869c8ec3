"""The PostgreSQL driver: a pipelined writer that outlives its connections, pooled views.

Applies migrations to a PostgreSQL database.

Asks the server what became of a transaction whose COMMIT was never answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.clock import Clock
from holdfast.errors import (
    InvalidInput,
    StoreBusy,
    StoreError,
    StoreGone,
    StoreUnreachable,
    UnknownOutcome,
)
from holdfast.store import migrations
from holdfast.store.application_connections import Standing
from holdfast.store.connection_pool import Pool
from holdfast.store.database import Contended, Pace, Patience, Surroundings, Transaction
from holdfast.store.fork_guard import HomeProcess
from holdfast.store.group_commit.deferred import longest_wait
from holdfast.store.migrations import Applied, Ledger, Migration
from holdfast.store.postgresql.connection import (
    Address,
    Connection,
    ConnectionLost,
    asks_again,
    describe,
    is_busy,
)
from holdfast.store.postgresql.joined_transaction import welcome
from holdfast.store.postgresql.session import Session
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.transitions import Mark

T = TypeVar("T")

# Any number will do, as long as it is always this one: the letters of "holdfast".
_LOCK = int.from_bytes(b"holdfast", "big")
_EXISTS = "SELECT to_regclass('holdfast_migration') IS NOT NULL AS yes"
_RECORD = """
INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (%s, %s, %s, %s)
"""


class PostgresqlMigrator:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def applied(self) -> Sequence[Applied]:
        answer = self._connection.execute(_EXISTS).fetchone()
        if not answer or not answer["yes"]:
            return []
        found = self._connection.execute(migrations.APPLIED).fetchall()
        return [Applied(**row) for row in found]

    def exclusively(self, work: Callable[[Ledger], T]) -> T:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._connection.execute(migrations.TABLE)
            return work(self)

    def apply(self, migration: Migration) -> None:
        # As it stands and unprepared: a file holds many statements, and its % are its own.
        self._connection.execute(migration.text.encode(), prepare=False)
        record = (migration.number, migration.name, migration.checksum, self._clock.now())
        self._connection.execute(_RECORD, record)


_STATUS = "SELECT pg_xact_status(CAST(%(xid)s AS xid8))"
# The session is known by its transaction: its process id may belong to someone else by now.
_END_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_xid = CAST(CAST(%(xid)s AS xid8) AS xid) AND pid <> pg_backend_pid()
"""
_FIND_MARK = """
SELECT 1 FROM holdfast_event
WHERE (entity, version, at, type) = (%(entity)s, %(version)s, %(at)s, %(type)s)
"""


def was_committed(session: Session, xid: str, mark: Mark | None) -> bool | None:
    """Tell whether the transaction was committed; None while the server has not decided.

    An undecided one is ended, so that the next question gets an answer.
    """
    status = _status(session, xid)
    if status == "in progress":
        session.execute(_END_SESSION, {"xid": xid}).rows()
        return None
    if mark is None:
        return status == "committed"
    # A standby that took over may have given the same number to another transaction.
    return status == "committed" and _exists(session, mark)


def _status(session: Session, xid: str) -> str:
    try:
        ((status,),) = session.execute(_STATUS, {"xid": xid}).rows()[1]
    except psycopg.errors.InvalidParameterValue:
        # A number of the future: the server that took over never saw that transaction.
        return "aborted"
    if status is None:
        raise UnknownOutcome(f"the server has forgotten transaction {xid}")
    return str(status)


def _exists(session: Session, mark: Mark) -> bool:
    return bool(session.execute(_FIND_MARK, mark.as_parameters()).rows()[1])


# Longer than others of this kind have a row, and short for all that wait behind the writer.
LOCK_TIMEOUT = 0.25
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_HURRY = "SELECT set_config('lock_timeout', %(patience)s, true)"
_BEGIN_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresqlDatabase:
    dialect: Dialect = "postgresql"
    file = None

    def __init__(self, url: str, surroundings: Surroundings) -> None:
        settings = surroundings.settings
        self._address = Address(url)
        self._surroundings = surroundings
        self._home = HomeProcess()
        self._queries: Mapping[str, queries.Query] = queries.load(
            self.dialect, surroundings.files.queries
        )
        self._away = Pace(first=0.05, longest=2.0, total=settings.patience)
        self._contended = Pace(first=0.002, longest=0.25, total=settings.patience)
        self._views = Pool(
            lambda: Session(self._address.connect_view()),
            close=Session.close,
            usable=lambda session: session.at_rest,
            lock=surroundings.threads.lock(),
            spare=settings.view_connections,
        )
        try:
            self._writer = self._connect_writer()
        except ConnectionLost as error:
            raise unreachable(error) from None

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        return self._persistently(lambda: self._transact(self._live_writer(), work, patience))

    def rehearse(self, work: Callable[[Transaction], T]) -> T:
        return self._persistently(lambda: self._rehearse(work))

    def view(self, work: Callable[[Transaction], T]) -> T:
        return self._persistently(lambda: self._view(work))

    def join(self, connection: object) -> Transaction:
        return PostgresqlTransaction(welcome(connection), self._queries, self._surroundings.clock)

    def begin(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        return self.connect().once()

    def connect(self) -> Standing[psycopg.Connection[Any]]:
        return Standing(
            self._connect_guest,
            transaction=psycopg.Connection.transaction,
            usable=lambda connection: not connection.closed,
            sound=lambda connection: (
                connection.info.transaction_status == TransactionStatus.INTRANS
            ),
            close=psycopg.Connection.close,
        )

    def _connect_guest(self) -> psycopg.Connection[Any]:
        self._home.check()
        try:
            return self._address.connect()
        except ConnectionLost as error:
            raise unreachable(error) from None

    def upgrade(self) -> None:
        known = migrations.load(self.dialect, self._surroundings.files.migrations)
        # Safe to begin again wherever it broke off: each step first reads what was applied.
        self._persistently(lambda: self._upgrade(known))

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        # It has no file; of a server that is away every call hears by itself.
        del callback
        return lambda: None

    def close(self) -> None:
        # A child that closed its parent's connection would end the parent's session.
        if self._home.here():
            self._views.close()
            self._writer.close()

    def _persistently(self, work: Callable[[], T]) -> T:
        """Run `work` again after whatever left nothing of it behind and may pass."""
        self._home.check()
        away: Patience | None = None
        contended: Patience | None = None
        while True:
            try:
                return work()
            except ConnectionLost as error:
                away = away or self._patience(self._away)
                if not away.wait():
                    raise unreachable(error) from None
            except psycopg.DataError as error:
                raise InvalidInput("value", f"PostgreSQL: {describe(error)}") from None
            except (psycopg.Error, Contended) as error:
                if is_busy(error):
                    settings = self._surroundings.settings
                    raise StoreBusy(
                        "PostgreSQL: another transaction holds a key or a counter that this needs, "
                        f"and has not ended within {longest_wait(settings):g} s; "
                        "end it, and try again"
                    ) from None
                contended = contended or self._patience(self._contended)
                if not asks_again(error) or not contended.wait():
                    # Without the original, which quotes rows in its DETAIL.
                    raise StoreError(f"PostgreSQL: {describe(error)}") from None

    def _patience(self, pace: Pace) -> Patience:
        return Patience(pace, self._surroundings.clock, self._surroundings.randomness)

    def _upgrade(self, known: Sequence[migrations.Migration]) -> None:
        connection = self._address.connect()
        try:
            migrations.upgrade(PostgresqlMigrator(connection, self._surroundings.clock), known)
        except psycopg.Error as error:
            if connection.closed:
                raise ConnectionLost(describe(error)) from error
            raise
        finally:
            connection.close()

    def _live_writer(self) -> Session:
        if self._writer.lost:
            self._writer.close()
            self._writer = self._connect_writer()
        return self._writer

    def _connect_writer(self) -> Session:
        return Session(self._address.connect_writer(LOCK_TIMEOUT))

    def _transact(
        self, session: Session, work: Callable[[Transaction], T], patience: float | None
    ) -> T:
        transaction = PostgresqlTransaction(session, self._queries, self._surroundings.clock)
        with session.loss_noticed():
            session.execute(_BEGIN)
            if patience is not None:
                session.execute(_HURRY, {"patience": f"{round(patience * 1_000)}ms"})
            result = work(transaction)
            xid = transaction.xid()
        try:
            session.commit()
        except psycopg.Error as error:
            session.roll_back()
            if not session.lost:
                raise
            if xid is None or not self._was_committed(xid, transaction.mark, error):
                raise ConnectionLost(describe(error)) from error
        return result

    def _rehearse(self, work: Callable[[Transaction], T]) -> T:
        settings, clock = self._surroundings.settings, self._surroundings.clock
        session = Session(self._address.connect_writer(longest_wait(settings)))
        try:
            with session.loss_noticed():
                session.execute(_BEGIN)
                result = work(PostgresqlTransaction(session, self._queries, clock))
            session.roll_back()
        finally:
            session.close()
        return result

    def _was_committed(self, xid: str, mark: Mark | None, error: psycopg.Error) -> bool:
        def ask() -> bool | None:
            session = self._live_writer()
            with session.loss_noticed():
                return was_committed(session, xid, mark)

        patience = self._patience(self._contended)
        try:
            while (answer := self._persistently(ask)) is None:
                if not patience.wait():
                    raise UnknownOutcome("the server still has it in progress")
        except StoreError as second:
            raise UnknownOutcome(
                f"COMMIT of transaction {xid} went unanswered ({describe(error)}), "
                f"and the server cannot be asked what became of it: {second}"
            ) from second
        return answer

    def _view(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._views.borrow() as session, session.loss_noticed():
                session.execute(_BEGIN_VIEW)
                clock = self._surroundings.clock
                result = work(PostgresqlTransaction(session, self._queries, clock))
                session.commit()
                return result
        except ConnectionLost:
            self._views.discard()
            raise


def unreachable(error: ConnectionLost) -> StoreUnreachable:
    return StoreUnreachable(
        f"PostgreSQL does not answer: {error}; is the server running, and is the URL right?"
    )
