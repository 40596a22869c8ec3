"""A handle on a task or a run: its id now, its result when it has one."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from holdfast.engine.edge import operation, then
from holdfast.engine.engine import Engine
from holdfast.errors import TaskFailed
from holdfast.model.status import RunStatus, Status

T = TypeVar("T")


class Handle(Generic[T]):
    """What `enqueue` and `start` give back."""

    def __init__(
        self, engine: Engine, identifier: str, read: Callable[[Any], T], *, created: bool
    ) -> None:
        self._engine = engine
        self._read = read
        self.id = identifier
        self.created = created

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    @operation
    def result(self, timeout: float | None = None) -> Future[T]:
        """Wait for the end: the result, or `TaskFailed` when there is none.

        A `timeout` in seconds raises TimeoutError; the task itself goes on.
        """
        return then(self._engine.outcomes.wait(self.id, timeout), self._result)

    def _result(self, row: dict[str, Any]) -> T:
        if row["status"] not in {Status.DONE, RunStatus.COMPLETED}:
            error = None if row["error"] is None else json.loads(row["error"])
            raise TaskFailed(self.id, row["status"], error)
        return self._read(row)
