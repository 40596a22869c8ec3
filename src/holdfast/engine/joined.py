"""The engine's operations inside a transaction that somebody else began and will end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from holdfast.engine.desk import Desk
from holdfast.engine.edge import then
from holdfast.engine.expect_desk import Expectations
from holdfast.engine.joining import Joining
from holdfast.engine.operations import Operation
from holdfast.engine.run_desk import Runs
from holdfast.engine.signal_desk import Signals
from holdfast.engine.tasks import Tasks
from holdfast.engine.work import Work
from holdfast.errors import WrongThread


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """What can be asked there; it is so when that transaction commits, and not before."""

    tasks: Tasks
    runs: Runs
    work: Work
    signals: Signals
    expectations: Expectations


def join(desk: Desk, connection: object) -> Joined:
    inside = replace(desk, commits=_Commits(desk.joining, connection))
    return Joined(
        tasks=Tasks(inside),
        runs=Runs(inside),
        work=Work(inside),
        signals=Signals(inside),
        expectations=Expectations(inside),
    )


class _Commits:
    """Stands where the group commit stands, and writes each operation by itself, at once."""

    def __init__(self, joining: Joining, connection: object) -> None:
        self._joining = joining
        self._connection = connection

    def submit(self, operation: Operation, read: Callable[[Any], Any] | None = None) -> Future[Any]:
        reply = self._joining.ask(operation, self._connection)
        return reply if read is None else then(reply, read)

    def submit_many(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        return [self.submit(each) for each in operations]

    def enter(self, *_: object) -> None:
        raise WrongThread("a report inside another's transaction is waited for; use complete")
