"""Kept connections, open from one transaction to the next, and connections of applications."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

from holdfast.errors import InvalidInput

C = TypeVar("C")
T = TypeVar("T")


class KeptConnection(Generic[C]):
    """A connection for one thread; after a loss the next transaction opens another connection."""

    def __init__(
        self,
        connect: Callable[[], C],
        *,
        transaction: Callable[[C], AbstractContextManager[object]],
        usable: Callable[[C], bool],
        can_commit: Callable[[C], bool],
        close: Callable[[C], None],
    ) -> None:
        self._connect = connect
        self._transaction = transaction
        self._usable = usable
        self._can_commit = can_commit
        self._close = close
        self._connection: C | None = None

    @contextmanager
    def begin(self) -> Iterator[C]:
        """A write transaction: leaving the block commits it, an error rolls it back."""
        if self._connection is None or not self._usable(self._connection):
            self.close()
            self._connection = self._connect()
        with self._transaction(self._connection):
            yield self._connection

    def run(self, work: Callable[[C], T]) -> T:
        """Run `work` in a transaction, and once more from its start if the connection was lost.

        `work` must do no harm when it is done twice.
        """
        try:
            with self.begin() as connection:
                return work(connection)
        except Exception:
            if self._connection is None or self._usable(self._connection):
                raise
        with self.begin() as connection:
            return work(connection)

    @contextmanager
    def begin_once(self) -> Iterator[C]:
        """One write transaction, after which the connection is closed."""
        try:
            with self.begin() as connection:
                yield connection
        finally:
            self.close()

    @property
    def can_commit(self) -> bool:
        """Whether the current transaction is open and has not failed."""
        return self._connection is not None and self._can_commit(self._connection)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._close(connection)


def unwrap_connection(connection: object) -> object:
    """The driver's connection inside a Session or Connection of SQLAlchemy, or the one given.

    SQLAlchemy is not imported.
    """
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
