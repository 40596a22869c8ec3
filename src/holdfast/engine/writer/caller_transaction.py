"""Caller transactions: operations inside a transaction that the application began and will end.

What is written there exists exactly when that transaction commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from holdfast.engine.core.context import CallerTransactionsPort, CommitPort, EngineContext
from holdfast.engine.core.operation import Operation
from holdfast.engine.core.sync_async import gather_futures, map_future
from holdfast.engine.runs import Runs
from holdfast.engine.state.durable import Signals
from holdfast.engine.state.expected_version import Expectations
from holdfast.engine.surroundings.imports import Imports
from holdfast.engine.tasks import Tasks
from holdfast.engine.work import Work
from holdfast.engine.writer.writer import Writer
from holdfast.errors import InvalidInput, WrongThread
from holdfast.store.database import Contended, Database, Transaction, read_replies
from holdfast.store.loop_connection import StatementInterrupted

T = TypeVar("T")

MAX_TRIES = 5
WriteOperation = Callable[[Operation], Future[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class JoinedTransaction:
    """The facades of the engine inside a caller's transaction."""

    tasks: Tasks
    runs: Runs
    work: Work
    signals: Signals
    expectations: Expectations
    imports: Imports


def join_transaction(context: EngineContext, connection: object) -> JoinedTransaction:
    return join_with(
        context, partial(context.caller_transactions.write_operation, connection=connection)
    )


def join_with(context: EngineContext, write_operation: WriteOperation) -> JoinedTransaction:
    """The facades, with a function that writes each operation at once."""
    return _make_facades(context, _ImmediateCommits(write_operation))


@contextmanager
def join_group(context: EngineContext, connection: object) -> Iterator[JoinedTransaction]:
    """The facades, for a block: its operations are written as one group when the block ends."""
    group = _CommitsAtEnd(context.caller_transactions, connection)
    yield _make_facades(context, group)
    group.write()


def _make_facades(context: EngineContext, commits: CommitPort) -> JoinedTransaction:
    inside = replace(context, commits=commits)
    return JoinedTransaction(
        tasks=Tasks(inside),
        runs=Runs(inside),
        work=Work(inside),
        signals=Signals(inside),
        expectations=Expectations(inside),
        imports=Imports(inside),
    )


class _ImmediateCommits:
    """A commit port that writes each operation by itself, at once."""

    def __init__(self, write_operation: WriteOperation) -> None:
        self._write_operation = write_operation

    def submit(self, operation: Operation, read: Callable[[Any], Any] | None = None) -> Future[Any]:
        reply = self._write_operation(operation)
        return reply if read is None else map_future(reply, read)

    def submit_many(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        return [self.submit(each) for each in operations]

    def submit_all(self, operations: Sequence[Operation]) -> Future[list[Any]]:
        return gather_futures(self.submit_many(operations))

    def enter(self, *_: object) -> None:
        raise WrongThread("a report inside another's transaction is waited for; use complete")


class _CommitsAtEnd(_ImmediateCommits):
    """A commit port that writes all operations together as one group at the end of a block."""

    def __init__(self, caller_transactions: CallerTransactionsPort, connection: object) -> None:
        super().__init__(partial(caller_transactions.write_operation, connection=connection))
        self._caller_transactions = caller_transactions
        self._connection = connection
        self._submitted: list[tuple[Operation, Future[Any]]] = []
        self._keys: set[str] = set()

    def submit(self, operation: Operation, read: Callable[[Any], Any] | None = None) -> Future[Any]:
        if not self._keys.isdisjoint(operation.keys):
            raise InvalidInput("group", f"has two operations about {operation.keys[0]}")
        self._keys.update(operation.keys)
        reply = _ReplyAtEnd(read)
        self._submitted.append((operation, reply))
        return reply

    def write(self) -> None:
        if self._submitted:
            self._caller_transactions.write_operations(self._submitted, self._connection)


class _ReplyAtEnd(Future[Any]):
    """A future that is settled when its block ends, and that cannot be waited for before."""

    def __init__(self, read: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self._read = read

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - whatever is answered
        if not self.done():
            raise WrongThread("it is written when the block ends; submit it, and ask for it then")
        reply = super().result(timeout)
        return reply if self._read is None else self._read(reply)


class CallerTransactions:
    """Writes operations on connections of the application, each group behind a savepoint."""

    def __init__(self, database: Database, writer: Callable[[], Writer], secret: bytes) -> None:
        self._database = database
        self._writer = writer
        self._secret = secret.decode()

    def read(self, read: Callable[[Transaction], T], connection: object) -> T:
        """Read in the caller's transaction, which sees what it has written itself."""
        transaction = self._database.join(connection)
        self._check_store(transaction)
        return read(transaction)

    def write_operation(self, operation: Operation, connection: object) -> Future[Any]:
        """Write one operation in the caller's transaction, which the caller commits."""
        answer: Future[Any] = Future()
        self.write_operations([(operation, answer)], connection)
        return answer

    def write_operations(
        self, submitted: Sequence[tuple[Operation, Future[Any]]], connection: object
    ) -> None:
        """Write operations as one group; no two of them may be about one run or task."""
        transaction = self._database.join(connection)
        self._check_store(transaction)
        replies = self._write(transaction, [operation for operation, _ in submitted])
        for (_, answer), reply in zip(submitted, replies, strict=True):
            if isinstance(reply, BaseException):
                answer.set_exception(reply)
            else:
                answer.set_result(reply)

    def _write(self, transaction: Transaction, operations: Sequence[Operation]) -> list[object]:
        for attempt in range(1, MAX_TRIES + 1):
            transaction.run("set_savepoint")
            try:
                replies = read_replies(self._writer().apply(transaction, operations))
            except Contended:
                transaction.run("roll_back_to_savepoint")
                if attempt == MAX_TRIES:
                    raise
            except (InvalidInput, StatementInterrupted):
                transaction.run("roll_back_to_savepoint")
                raise
            else:
                transaction.run("release_savepoint")
                return replies
        raise AssertionError

    def _check_store(self, transaction: Transaction) -> None:
        rows = transaction.read("store_secret")
        if [row["value"] for row in rows] != [self._secret]:
            raise InvalidInput("connection", "leads to another store than this Holdfast's")
