"""Kept connections, for one transaction after another, and connections of applications."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

from holdfast.errors import InvalidInput
from holdfast.store.connection_pool import ConnectionPool
from holdfast.store.loop_connection import AWAIT_ADVICE, LoopConnection, is_asynchronous

C = TypeVar("C")
T = TypeVar("T")


class KeptConnection(Generic[C]):
    """Connections of a pool for the transactions of one thread, which has one at a time.

    Between its transactions the connection is in the pool, so that others may use it. With
    `lends`, an application's code gets it and may change its settings: others get another then.
    """

    def __init__(  # noqa: PLR0913 - what a driver knows of its connections
        self,
        pool: ConnectionPool[C],
        *,
        transaction: Callable[[C], AbstractContextManager[object]],
        usable: Callable[[C], bool],
        can_commit: Callable[[C], bool],
        refuse: Callable[[], None] = lambda: None,
        lends: bool = False,
    ) -> None:
        self._pool = pool
        self._borrower = self if lends else None
        self._transaction = transaction
        self._usable = usable
        self._can_commit = can_commit
        # Raises where a transaction would wait for one that its own thread has open.
        self._refuse = refuse
        self._connection: C | None = None
        self._was_lost = False

    @contextmanager
    def begin(self, *, fresh: bool = False) -> Iterator[C]:
        """A write transaction: leaving the block commits it, an error rolls it back."""
        # Nothing is lost yet: where none can be taken, there was no work to do once more.
        self._was_lost = False
        self._refuse()
        connection = self._pool.take(fresh=fresh, borrower=self._borrower)
        self._connection = connection
        try:
            with self._transaction(connection):
                yield connection
        finally:
            self._connection = None
            self._was_lost = not self._usable(connection)
            if self._was_lost:
                self._pool.discard()
            self._pool.give_back(connection, keep=not fresh)

    def run(self, work: Callable[[C], T]) -> T:
        """Run `work` in a transaction, and once more from its start if the connection was lost.

        `work` must do no harm when it is done twice.
        """
        try:
            with self.begin() as connection:
                return work(connection)
        except Exception:
            if not self._was_lost:
                raise
        with self.begin() as connection:
            return work(connection)

    @property
    def can_commit(self) -> bool:
        """Whether the current transaction is open and has not failed."""
        return self._connection is not None and self._can_commit(self._connection)


def unwrap_connection(connection: object) -> object:
    """The driver's connection inside a Session or Connection of SQLAlchemy, or the one given.

    SQLAlchemy is not imported. An asynchronous connection is refused unless it is inside a
    `LoopConnection`, whose `driver` is given then.
    """
    if isinstance(connection, LoopConnection):
        given_driver: object = connection.driver
        return given_driver
    if is_asynchronous(connection):
        raise InvalidInput("connection", AWAIT_ADVICE)
    if not any(base.__module__.startswith("sqlalchemy.") for base in type(connection).__mro__):
        return connection
    given: Any = connection
    # A connection of SQLAlchemy's pool has no transaction but the driver's.
    if hasattr(given, "driver_connection"):
        return _refuse_closed(given.driver_connection)
    if not hasattr(given, "connection"):
        kind = type(connection).__name__
        reason = f"is SQLAlchemy's {kind}; give the Connection or Session that has the transaction"
        raise InvalidInput("connection", reason)
    if callable(given.connection):
        given = given.connection()
    _begin_in_sqlalchemy(given)
    return given.connection.driver_connection


def _refuse_closed(connection: object | None) -> object:
    if connection is None:
        raise InvalidInput("connection", "is closed; open another, and begin anew what was in it")
    return connection


def _begin_in_sqlalchemy(connection: Any) -> None:  # noqa: ANN401 - SQLAlchemy is not imported
    """Begin the transaction by SQLAlchemy, which commits no transaction that it does not know."""
    if not connection.in_transaction():
        connection.exec_driver_sql("SELECT 1")
