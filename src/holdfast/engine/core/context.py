"""Engine context: the way to the writer, the way to read, and the ports that all parts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from holdfast.engine.core.operation import Operation
from holdfast.engine.core.shared_reads import SharedReads
from holdfast.engine.core.sync_async import map_future
from holdfast.ids import Ids
from holdfast.randomness import Randomness
from holdfast.settings import Settings
from holdfast.store.database import Database, Transaction
from holdfast.store.group_commit.entries import Entry

T = TypeVar("T")
# The actor of operations that name none.
USER = "user"


class CommitPort(Protocol):
    """The queue for operations: the group commit, or the transaction of a caller."""

    def submit(
        self, operation: Operation, read: Callable[[Any], Any] | None = None
    ) -> Future[Any]: ...

    def submit_many(self, operations: Sequence[Operation]) -> list[Future[Any]]: ...

    def submit_all(self, operations: Sequence[Operation]) -> Future[list[Any]]: ...

    def enter(self, entry: Entry[Operation], entered: Callable[[], None]) -> None: ...


class CallerTransactionsPort(Protocol):
    """Operations written in a transaction that the application began and will end."""

    def read(self, read: Callable[[Transaction], T], connection: object) -> T: ...

    def write_operation(self, operation: Operation, connection: object) -> Future[Any]: ...

    def write_operations(
        self, submitted: Sequence[tuple[Operation, Future[Any]]], connection: object
    ) -> None: ...


class StandingClaimsPort(Protocol):
    """The standing claims of this process."""

    # The class of standing claims is in `claims`, which this room may not import.
    def add(self, standing_claim: Any) -> Callable[[], None]: ...  # noqa: ANN401 - see above


@dataclass(frozen=True, kw_only=True)
class EngineContext:
    """The parts of the engine that every facade uses."""

    database: Database
    reads: SharedReads
    commits: CommitPort
    ids: Ids
    randomness: Randomness
    settings: Settings
    secret: bytes = field(repr=False)
    caller_transactions: CallerTransactionsPort
    standing_claims: StandingClaimsPort

    def submit(
        self,
        operation: Operation,
        connection: object = None,
        *,
        read: Callable[[Any], Any] | None = None,
    ) -> Future[Any]:
        """Submit an operation to the writer, or write it at once on the caller's `connection`.

        With `read`, the result of the future is what `read` makes of the reply.
        """
        if connection is None:
            return self.commits.submit(operation, read)
        reply = self.caller_transactions.write_operation(operation, connection)
        return reply if read is None else map_future(reply, read)

    def submit_many(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        return self.commits.submit_many(operations)

    def submit_all(self, operations: Sequence[Operation]) -> Future[list[Any]]:
        """Submit operations; the future has all replies in order, or the first error."""
        return self.commits.submit_all(operations)

    def view(self, read: Callable[[Transaction], T], connection: object = None) -> T:
        """Read the store, or what the transaction of the caller on a `connection` sees of it."""
        if connection is None:
            return self.database.view(read)
        return self.caller_transactions.read(read, connection)

    def now(self) -> int:
        """The time of the database in microseconds, which decides what is due."""
        return self.reads.ask(_read_now, None)


def _read_now(tx: Transaction, asked: Sequence[None]) -> list[int]:
    return [int(tx.read("now")[0]["now"])] * len(asked)
