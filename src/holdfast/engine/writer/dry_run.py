"""Dry runs: operations in a transaction that is rolled back, to see what they would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Operation
from holdfast.engine.writer.caller_transaction import JoinedTransaction, join_with
from holdfast.engine.writer.writer import Writer
from holdfast.store.database import Row, Transaction, read_replies
from holdfast.store.sql_text.queries import Rows

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class DryRun:
    """The facades inside the transaction of a dry run, and that transaction."""

    joined: JoinedTransaction
    tx: ChangeRecorder

    def lock(self, identifiers: Sequence[str]) -> None:
        """Lock the runs and tasks of the dry run, in the order in which all processes lock."""
        runs = sorted(each for each in identifiers if each.startswith("r_"))
        tasks = sorted(each for each in identifiers if each.startswith("t_"))
        self.tx.run("lock_runs", tasks=tasks, runs=runs)
        self.tx.run("lock_tasks", tasks=tasks, beside=())


class ChangeRecorder:
    """A transaction that records the ids of runs and tasks that are changed or made in it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._changed: dict[str, None] = {}

    def take_changed(self) -> list[str]:
        """The ids that were changed since the last call, in the order of the changes."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._tx.read(query, rows=rows, **parameters)

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        changed = self._tx.change(query, rows=rows, **parameters)
        self._changed |= dict.fromkeys(row["entity"] for row in changed)
        return changed

    def read_late(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> Callable[[], list[Row]]:
        return self._tx.read_late(query, rows=rows, **parameters)

    def send_ahead(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._tx.send_ahead(query, rows=rows, **parameters)

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        self._changed |= dict.fromkeys(str(row[0]) for row in rows)
        self._tx.insert(query, rows=rows, some=some)

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._tx.write(query, rows=rows, **parameters)

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._tx.run(query, rows=rows, **parameters)


def rehearse(
    context: EngineContext, writer: Callable[[], Writer], work: Callable[[DryRun], T]
) -> T:
    """Return what `work` returns; nobody is told, no task is handed over, and nothing stays."""

    def inside(tx: Transaction) -> T:
        recorder = ChangeRecorder(tx)

        def write_operation(operation: Operation) -> Future[Any]:
            answer: Future[Any] = Future()
            (reply,) = read_replies(writer().apply(recorder, [operation]))
            if isinstance(reply, BaseException):
                answer.set_exception(reply)
            else:
                answer.set_result(reply)
            return answer

        return work(DryRun(joined=join_with(context, write_operation), tx=recorder))

    return context.database.dry_run(inside)
