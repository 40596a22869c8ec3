"""What the parts of the engine share: the way to the writer, the way to read, the ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.engine.joining import Joining
from holdfast.engine.operations import Operation
from holdfast.engine.taking import Takers
from holdfast.ids import Ids
from holdfast.randomness import Randomness
from holdfast.settings import Settings
from holdfast.store.database import Database, Transaction
from holdfast.store.group import GroupCommit

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Desk:
    database: Database
    commits: GroupCommit[Operation]
    ids: Ids
    randomness: Randomness
    settings: Settings
    secret: bytes = field(repr=False)
    joining: Joining
    takers: Takers

    def submit(self, operation: Operation, connection: object = None) -> Future[Any]:
        """Ask the writer, or write at once in a transaction of the application's own."""
        if connection is not None:
            return self.joining.ask(operation, connection)
        return self.commits.submit(operation)

    def submit_many(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        return self.commits.submit_many(operations)

    def view(self, read: Callable[[Transaction], T]) -> T:
        return self.database.view(read)

    def now(self) -> int:
        """The time that decides: the database's, in microseconds."""
        return int(self.view(lambda tx: tx.read("now"))[0]["now"])
