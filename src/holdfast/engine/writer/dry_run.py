"""What operations would change: they are done in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Operation
from holdfast.engine.writer.caller_transaction import JoinedTransaction, join_with
from holdfast.engine.writer.writer import Writer
from holdfast.store.database import Row, Transaction
from holdfast.store.sql_text.queries import Rows

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class DryRun:
    """What can be asked there, and the transaction, in which all of it is so until it ends."""

    joined: JoinedTransaction
    tx: ChangeRecorder

    def lock(self, identifiers: Sequence[str]) -> None:
        """Lock all that is going to be asked about, in the order in which every process does."""
        runs = sorted(each for each in identifiers if each.startswith("r_"))
        tasks = sorted(each for each in identifiers if each.startswith("t_"))
        self.tx.run("lock_runs", tasks=tasks, runs=runs)
        self.tx.run("lock_tasks", tasks=tasks, beside=())


class ChangeRecorder:
    """A transaction that notes the runs and tasks that are changed or made in it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._changed: dict[str, None] = {}

    def take_changed(self) -> list[str]:
        """What was changed since this was last asked, in the order it was."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._tx.read(query, rows=rows, **parameters)

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        changed = self._tx.change(query, rows=rows, **parameters)
        self._changed |= dict.fromkeys(row["entity"] for row in changed)
        return changed

    def insert(self, query: str, /, *, rows: Rows) -> Callable[[], int]:
        self._changed |= dict.fromkeys(str(row[0]) for row in rows)
        return self._tx.insert(query, rows=rows)

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._tx.write(query, rows=rows, **parameters)

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._tx.run(query, rows=rows, **parameters)


def rehearse(
    context: EngineContext, writer: Callable[[], Writer], work: Callable[[DryRun], T]
) -> T:
    """Give what `work` gives; nobody is woken, told or handed anything, and nothing stays."""

    def inside(tx: Transaction) -> T:
        recorder = ChangeRecorder(tx)

        def write_operation(operation: Operation) -> Future[Any]:
            answer: Future[Any] = Future()
            (reply,) = writer().apply(recorder, [operation])
            if isinstance(reply, BaseException):
                answer.set_exception(reply)
            else:
                answer.set_result(reply)
            return answer

        return work(DryRun(joined=join_with(context, write_operation), tx=recorder))

    return context.database.dry_run(inside)
