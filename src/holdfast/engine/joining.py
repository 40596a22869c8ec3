"""New work in the application's own transaction: there exactly when that commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from holdfast.engine.asked import Operation
from holdfast.engine.writer import Writer
from holdfast.errors import InvalidInput
from holdfast.store.database import Contended, Database, Transaction

TRIES = 5


class Joining:
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
