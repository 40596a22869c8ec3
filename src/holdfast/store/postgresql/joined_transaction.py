"""Joined transactions: begun and ended by an application, on a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from holdfast.errors import InvalidInput
from holdfast.store.application_connections import unwrap_connection
from holdfast.store.database import Contended
from holdfast.store.loop_connection import LoopConnection
from holdfast.store.postgresql.connection import CONTENDED, describe_error

_FIND_STORE = """
SELECT to_regclass('holdfast_meta') IS NOT NULL, current_setting('transaction_read_only') = 'on'
"""
_FIND_OTHER_SCHEMA = """
SELECT min(schema.nspname), current_setting('search_path')
FROM pg_class AS found JOIN pg_namespace AS schema ON schema.oid = found.relnamespace
WHERE found.relname = 'holdfast_meta'
"""
_READ_ONLY = (
    "is in a read-only transaction, in which nothing can be written; give one that may write"
)


def refuse_contention(error: psycopg.Error) -> None:
    """Raise `Contended` if a statement has found that another process was first."""
    if error.sqlstate == CONTENDED:
        raise Contended(describe_error(error)) from None


Connection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


class CursorAnswer:
    def __init__(self, cursor: psycopg.Cursor[TupleRow]) -> None:
        self._cursor = cursor

    def rows(self) -> tuple[list[str], list[TupleRow]]:
        try:
            found = self._cursor.fetchall()
        except psycopg.Error as error:
            refuse_contention(error)
            raise
        return [column.name for column in self._cursor.description or ()], found


class ApplicationConnection:
    """The connection of an application, through which the statements of a transaction are sent."""

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self.driver = driver

    def execute(self, text: str, parameters: Mapping[str, object] | None = None) -> CursorAnswer:
        try:
            return CursorAnswer(self._cursor().execute(text.encode(), parameters))
        except psycopg.Error as error:
            refuse_contention(error)
            raise
        except UnicodeEncodeError as error:
            raise _lacking_error(self.driver, error) from error

    def _cursor(self) -> psycopg.Cursor[TupleRow]:
        """A plain cursor: the application's own class may read statements in another way."""
        chosen: object = self.driver.cursor_factory
        # A client-side cursor prepares no statements, which some connection poolers do not allow.
        by_client = isinstance(chosen, type) and issubclass(chosen, psycopg.ClientCursor)
        kind = psycopg.ClientCursor if by_client else psycopg.Cursor
        return kind(self.driver, row_factory=tuple_row)


@dataclass(frozen=True, slots=True)
class FetchedAnswer:
    columns: list[str]
    fetched: list[TupleRow]

    def rows(self) -> tuple[list[str], list[TupleRow]]:
        return self.columns, self.fetched


class AwaitedConnection:
    """The asynchronous connection of an application, whose event loop sends the statements."""

    def __init__(self, lent: LoopConnection[psycopg.AsyncConnection[Any]]) -> None:
        self._lent = lent
        self.driver = lent.driver

    def execute(self, text: str, parameters: Mapping[str, object] | None = None) -> FetchedAnswer:
        try:
            return self._lent.wait_for(partial(self._execute, text.encode(), parameters))
        except psycopg.Error as error:
            refuse_contention(error)
            raise
        except UnicodeEncodeError as error:
            raise _lacking_error(self.driver, error) from error

    async def _execute(self, text: bytes, parameters: Mapping[str, object] | None) -> FetchedAnswer:
        """Send a statement and fetch its rows at once, so that the thread waits only once."""
        chosen: object = self.driver.cursor_factory
        by_client = isinstance(chosen, type) and issubclass(chosen, psycopg.AsyncClientCursor)
        kind = psycopg.AsyncClientCursor if by_client else psycopg.AsyncCursor
        cursor = kind(self.driver, row_factory=tuple_row)
        await cursor.execute(text, parameters)
        columns = [column.name for column in cursor.description or ()]
        return FetchedAnswer(columns, await cursor.fetchall() if columns else [])


def check_connection(connection: object) -> ApplicationConnection | AwaitedConnection:
    """The psycopg connection inside `connection`; refused if the store cannot be written by it."""
    checked = _make_sender(connection)
    found = checked.driver
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
    if found.info.encoding == "ascii":
        raise _encoding_error(found, "in which text is only bytes")
    # Asked by to_regclass: a statement on a missing table would break the caller's transaction.
    ((has_store, read_only),) = checked.execute(_FIND_STORE).rows()[1]
    if not has_store:
        raise InvalidInput("connection", _describe_missing_store(checked))
    if read_only:
        raise InvalidInput("connection", _READ_ONLY)
    return checked


def _make_sender(connection: object) -> ApplicationConnection | AwaitedConnection:
    found = unwrap_connection(connection)
    if isinstance(connection, LoopConnection) and isinstance(found, psycopg.AsyncConnection):
        return AwaitedConnection(connection)
    if isinstance(found, psycopg.Connection):
        return ApplicationConnection(found)
    raise InvalidInput("connection", _describe_other_driver(found))


def _describe_other_driver(connection: object) -> str:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    reason = f"must be psycopg's, or SQLAlchemy's on postgresql+psycopg, not {kind}"
    if not kind.startswith("asyncpg."):
        return reason
    return (
        f"{reason}: Holdfast writes through psycopg alone, and no second connection is in your "
        "transaction; give SQLAlchemy the URL postgresql+psycopg://…, or use psycopg's "
        "AsyncConnection"
    )


def _lacking_error(connection: Connection, error: UnicodeEncodeError) -> InvalidInput:
    return _encoding_error(connection, f"which lacks {error.object[error.start : error.end]!r}")


def _encoding_error(connection: Connection, reason: str) -> InvalidInput:
    encoding = connection.info.parameter_status("client_encoding")
    advice = "use UTF8, as in SET client_encoding TO 'UTF8'"
    return InvalidInput("connection", f"has the client_encoding {encoding}, {reason}; {advice}")


def _describe_missing_store(connection: ApplicationConnection | AwaitedConnection) -> str:
    ((schema, path),) = connection.execute(_FIND_OTHER_SCHEMA).rows()[1]
    if schema is None:
        return "leads to a database without a Holdfast store"
    reason = f"has the search_path {path}, which does not lead to the Holdfast store in {schema}"
    return f"{reason}; add that schema to it, or give a connection that has it"
