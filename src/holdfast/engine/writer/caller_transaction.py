"""The engine's operations inside a transaction that somebody else began and will end.

New work in the application's own transaction: there exactly when that commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from holdfast.engine.core.context import Commits, EngineContext, Joining
from holdfast.engine.core.operation import Operation
from holdfast.engine.core.sync_async import gather, then
from holdfast.engine.runs import Runs
from holdfast.engine.state.durable import Signals
from holdfast.engine.state.expected_version import Expectations
from holdfast.engine.tasks import Tasks
from holdfast.engine.work import Work
from holdfast.engine.writer.writer import Writer
from holdfast.errors import InvalidInput, WrongThread
from holdfast.store.database import Contended, Database, Transaction

Ask = Callable[[Operation], Future[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """What can be asked there; it is so when that transaction commits, and not before."""

    tasks: Tasks
    runs: Runs
    work: Work
    signals: Signals
    expectations: Expectations


def join(context: EngineContext, connection: object) -> Joined:
    return join_by(context, partial(context.joining.ask, connection=connection))


def join_by(context: EngineContext, ask: Ask) -> Joined:
    """What can be asked where each operation is written at once, in one's own way."""
    return _join(context, _Commits(ask))


@contextmanager
def join_group(context: EngineContext, connection: object) -> Iterator[Joined]:
    """What is submitted in the block is written as one group when it ends, and answered then."""
    group = _Group(context.joining, connection)
    yield _join(context, group)
    group.write()


def _join(context: EngineContext, commits: Commits) -> Joined:
    inside = replace(context, commits=commits)
    return Joined(
        tasks=Tasks(inside),
        runs=Runs(inside),
        work=Work(inside),
        signals=Signals(inside),
        expectations=Expectations(inside),
    )


class _Commits:
    """Stands where the group commit stands, and writes each operation by itself, at once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def submit(self, operation: Operation, read: Callable[[Any], Any] | None = None) -> Future[Any]:
        reply = self._ask(operation)
        return reply if read is None else then(reply, read)

    def submit_many(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        return [self.submit(each) for each in operations]

    def submit_all(self, operations: Sequence[Operation]) -> Future[list[Any]]:
        return gather(self.submit_many(operations))

    def enter(self, *_: object, **__: object) -> None:
        raise WrongThread("a report inside another's transaction is waited for; use complete")


class _Group(_Commits):
    """Stands there too, and writes all of them together in the end, as the writer would."""

    def __init__(self, joining: Joining, connection: object) -> None:
        super().__init__(partial(joining.ask, connection=connection))
        self._joining = joining
        self._connection = connection
        self._asked: list[tuple[Operation, Future[Any]]] = []
        self._keys: set[str] = set()

    def submit(self, operation: Operation, read: Callable[[Any], Any] | None = None) -> Future[Any]:
        if not self._keys.isdisjoint(operation.keys):
            raise InvalidInput("group", f"has two operations about {operation.keys[0]}")
        self._keys.update(operation.keys)
        reply = _Later(read)
        self._asked.append((operation, reply))
        return reply

    def write(self) -> None:
        if self._asked:
            self._joining.ask_all(self._asked, self._connection)


class _Later(Future[Any]):
    """Nobody can wait for it in the block at whose end it is answered."""

    def __init__(self, read: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self._read = read

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - whatever is answered
        if not self.done():
            raise WrongThread("it is written when the block ends; submit it, and ask for it then")
        reply = super().result(timeout)
        return reply if self._read is None else self._read(reply)


TRIES = 5


class CallerTransactions:
    def __init__(self, database: Database, writer: Callable[[], Writer], secret: bytes) -> None:
        self._database = database
        self._writer = writer
        self._secret = secret.decode()

    def ask(self, operation: Operation, connection: object) -> Future[Any]:
        """Write one operation where the caller's transaction stands; the caller commits it."""
        answer: Future[Any] = Future()
        self.ask_all([(operation, answer)], connection)
        return answer

    def ask_all(self, asked: Sequence[tuple[Operation, Future[Any]]], connection: object) -> None:
        """Write operations there as one group, no two of them about one run or task."""
        transaction = self._database.join(connection)
        self._check_store(transaction)
        replies = self._write(transaction, [operation for operation, _ in asked])
        for (_, answer), reply in zip(asked, replies, strict=True):
            if isinstance(reply, BaseException):
                answer.set_exception(reply)
            else:
                answer.set_result(reply)

    def _write(self, transaction: Transaction, operations: Sequence[Operation]) -> list[object]:
        for attempt in range(1, TRIES + 1):
            transaction.run("set_savepoint")
            try:
                replies = self._writer().apply(transaction, operations)
            except Contended:
                transaction.run("roll_back_to_savepoint")
                if attempt == TRIES:
                    raise
            except InvalidInput:
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
