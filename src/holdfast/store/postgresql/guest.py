"""A transaction that the application began and will end, on a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from holdfast.errors import InvalidInput
from holdfast.store.borrowed import driver_connection

_LOOK = """
SELECT to_regclass('holdfast_meta') IS NOT NULL, current_setting('transaction_read_only') = 'on'
"""
_READ_ONLY = (
    "is in a read-only transaction, in which nothing can be written; give one that may write"
)


class Answer:
    def __init__(self, cursor: psycopg.Cursor[TupleRow]) -> None:
        self._cursor = cursor

    def rows(self) -> tuple[list[str], list[TupleRow]]:
        found = self._cursor.fetchall()
        return [column.name for column in self._cursor.description or ()], found


class Guest:
    """The application's connection, as far as a transaction needs one."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, text: str, parameters: Mapping[str, object] | None = None) -> Answer:
        cursor = self._connection.cursor(row_factory=tuple_row)
        return Answer(cursor.execute(text.encode(), parameters))


def welcome(connection: object) -> Guest:
    """Find the psycopg connection in what was given; refuse what cannot carry a transaction."""
    found = driver_connection(connection)
    if isinstance(found, psycopg.AsyncConnection):
        reason = "is an AsyncConnection; give a psycopg.Connection, or SQLAlchemy on one"
        raise InvalidInput("connection", reason)
    if not isinstance(found, psycopg.Connection):
        kind = f"{type(found).__module__}.{type(found).__qualname__}"
        reason = f"must be psycopg's, or SQLAlchemy's on postgresql+psycopg, not {kind}"
        raise InvalidInput("connection", reason)
    if found.closed:
        raise InvalidInput("connection", "is closed; open another, and begin anew what was in it")
    status = found.info.transaction_status
    if found.autocommit and status == TransactionStatus.IDLE:
        reason = (
            "is in autocommit mode and no transaction; begin one: with connection.transaction()"
        )
        raise InvalidInput("connection", reason)
    if status == TransactionStatus.INERROR:
        raise InvalidInput("connection", "is in a failed transaction; roll it back first")
    guest = Guest(found)
    # Asked this way, because a table that is not there would break the caller's transaction.
    ((has_store, read_only),) = guest.execute(_LOOK).rows()[1]
    if not has_store:
        raise InvalidInput("connection", "leads to a database without a Holdfast store")
    if read_only:
        raise InvalidInput("connection", _READ_ONLY)
    return guest
