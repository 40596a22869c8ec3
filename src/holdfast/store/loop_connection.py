"""Loop connection: an asynchronous connection of an application, as a writing thread sees it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
C = TypeVar("C")
Statement = Callable[[], Awaitable[Any]]

AWAIT_ADVICE = (
    "is asynchronous; in its event loop write `await ….aio(…, connection=…)`, which sends the "
    "statements of the operation there"
)


class StatementInterrupted(BaseException):
    """The coroutine that awaits an operation was cancelled, so that its statements end."""


class LoopConnection(Generic[C]):
    """The `driver` connection of an application, for the thread that writes one operation.

    The thread never uses the driver: `send` has the event loop of the connection do that.
    """

    def __init__(self, driver: C, send: Callable[[Statement, Future[Any]], object]) -> None:
        self.driver = driver
        self._send = send

    def wait_for(self, statement: Callable[[], Awaitable[T]]) -> T:
        """Have the event loop carry out a statement, and wait for it in this thread."""
        reply: Future[T] = Future()
        self._send(statement, reply)
        return reply.result()


def is_asynchronous(connection: object) -> bool:
    """Whether this is an asynchronous connection of psycopg, or SQLAlchemy's around any."""
    if is_of_async_sqlalchemy(connection):
        return True
    # A connection of psycopg comes from a program that has imported it.
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(connection, psycopg.AsyncConnection)


def is_of_async_sqlalchemy(connection: object) -> bool:
    kinds = type(connection).__mro__
    return any(each.__module__.startswith("sqlalchemy.ext.asyncio") for each in kinds)
