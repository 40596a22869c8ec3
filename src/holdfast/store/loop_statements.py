"""Loop statements: sent by the event loop of a connection, for a thread that waits for each.

The engine writes in a thread. The coroutine that awaits the operation sends the statements
meanwhile, so that the connection is used nowhere but in its event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from holdfast.errors import InvalidInput
from holdfast.store.loop_connection import (
    LoopConnection,
    Statement,
    StatementInterrupted,
    is_of_async_sqlalchemy,
)

T = TypeVar("T")
Work = Callable[[LoopConnection[Any]], T]

_OTHER_LOOP = (
    "is used in another event loop, which still runs; await this in the loop that opened it"
)


class _LoopTurn:
    """The event loop that a connection is used in, and whose turn it is to write there."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lock = asyncio.Lock()


_turns: WeakKeyDictionary[Any, _LoopTurn] = WeakKeyDictionary()


async def use_in_thread(connection: object, work: Work[T]) -> T:
    """Run `work` in a thread that writes through an asynchronous connection of this event loop.

    Operations on one connection take turns, because their savepoints must not be interleaved.
    """
    asks_sqlalchemy = is_of_async_sqlalchemy(connection)
    driver = await _unwrap(connection) if asks_sqlalchemy else connection
    turn = _turns.get(driver)
    if turn is None or turn.loop.is_closed():
        turn = _turns[driver] = _LoopTurn()
    if turn.loop is not asyncio.get_running_loop():
        raise InvalidInput("connection", _OTHER_LOOP)
    async with turn.lock:
        return await _LoopStatements(driver).serve(work)


class _LoopStatements:
    """The statements of one operation, from the thread that asks for them to its event loop."""

    def __init__(self, driver: object) -> None:
        self._loop = asyncio.get_running_loop()
        self._asked: asyncio.Queue[tuple[Statement, Future[Any]] | None] = asyncio.Queue()
        self._lent = LoopConnection(driver, lambda *asked: self._put(asked))
        self._cancelled: asyncio.CancelledError | None = None
        # Whether the thread has heard that the caller is cancelled.
        self._interrupted = False

    def _put(self, asked: tuple[Statement, Future[Any]] | None) -> None:
        self._loop.call_soon_threadsafe(self._asked.put_nowait, asked)

    async def serve(self, work: Work[T]) -> T:
        """Run `work` in a thread, and send the statements that it waits for.

        When the caller is cancelled, the statement under way is interrupted, or else the next one.
        What `work` sends after that, to clean up, is still sent, however often the caller is
        cancelled meanwhile.
        """
        done = self._begin(work)
        while (asked := await self._take()) is not None:
            if self._cancelled is not None and not self._interrupted:
                self._interrupted = True
                asked[1].set_exception(StatementInterrupted())
            else:
                await self._send(*asked)
        if self._cancelled is not None:
            # Retrieved, because nobody else gets the error.
            done.exception()
            raise self._cancelled
        return done.result()

    async def _take(self) -> tuple[Statement, Future[Any]] | None:
        while True:
            try:
                return await self._asked.get()
            except asyncio.CancelledError as error:
                self._cancelled = self._cancelled or error

    async def _send(self, statement: Statement, reply: Future[Any]) -> None:
        """Send a statement, as a task of its own so that it is cancelled once at the most."""
        sending = asyncio.ensure_future(statement())
        while not sending.done():
            try:
                await asyncio.wait([sending])
            except asyncio.CancelledError as error:
                if self._cancelled is None:
                    sending.cancel()
                self._cancelled = self._cancelled or error
        if sending.cancelled():
            # Also where the loop ends and cancels all its tasks.
            self._cancelled = self._cancelled or asyncio.CancelledError()
            self._interrupted = True
            reply.set_exception(StatementInterrupted())
        elif (failure := sending.exception()) is not None:
            reply.set_exception(failure)
        else:
            reply.set_result(sending.result())

    def _begin(self, work: Work[T]) -> Future[T]:
        """Begin `work` in a thread of its own: those of a pool may all wait for this coroutine."""
        done: Future[T] = Future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                done.set_result(context.run(work, self._lent))
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's to see
                done.set_exception(error)
            self._put(None)

        threading.Thread(target=run, name="holdfast-loop-connection", daemon=True).start()
        return done


async def _unwrap(connection: Any) -> object:  # noqa: ANN401 - SQLAlchemy is not imported
    """The driver's connection inside an AsyncSession or AsyncConnection of SQLAlchemy."""
    if not hasattr(connection, "get_raw_connection"):
        if not hasattr(connection, "connection"):
            kind = type(connection).__name__
            advice = "give the AsyncConnection or AsyncSession that has the transaction"
            raise InvalidInput("connection", f"is SQLAlchemy's {kind}; {advice}")
        connection = await connection.connection()
    if connection.closed:
        raise InvalidInput("connection", "is closed; open another, and begin anew what was in it")
    # Begun by SQLAlchemy, which commits no transaction that it does not know.
    if not connection.in_transaction():
        await connection.exec_driver_sql("SELECT 1")
    raw = await connection.get_raw_connection()
    driver: object = raw.driver_connection
    return driver
