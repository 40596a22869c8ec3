"""What a worker elsewhere holds: the tokens of its attempts, and what came with them."""

from __future__ import annotations

import threading
from collections.abc import Collection

from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment
from holdfast.model.trace import derive_trace_id
from holdfast.worker.remote.wire import Around

KEPT = 10_000


class Holdings:
    """By task and attempt; those are forgotten that were held, or asked for, long ago."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[Assignment, Around]] = {}
        # Nobody else is to find one missing that is just put behind the others.
        self._lock = threading.RLock()

    def add(self, assignment: Assignment, around: Around) -> None:
        with self._lock:
            self._held[assignment.task_id, assignment.attempt] = (assignment, around)
            while len(self._held) > KEPT:
                del self._held[next(iter(self._held))]

    def token(self, task_id: str, fence: int) -> str:
        with self._lock:
            found = self._held.get((task_id, fence))
        if found is None:
            raise InvalidInput("token", "this worker does not hold that attempt")
        return found[0].token

    def newest(self, task_id: str) -> str:
        """The token of the latest attempt of a task."""
        return self.token(task_id, max(self._attempts(task_id), default=0))

    def around(self, task_id: str) -> Around:
        with self._lock:
            return self._held[task_id, max(self._attempts(task_id))][1]

    def trace(self, root: str) -> str:
        """The trace of what an attempt that is held belongs to."""
        for assignment, around in reversed(self._all()):
            if root in {assignment.run_id, assignment.task_id}:
                return around.trace_id
        return derive_trace_id(root)

    def attempts(self, wanted: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of some attempts that were held here; who runs for long is asked for by this."""
        with self._lock:
            found = {each for each in wanted if each in self._held}
            self._held |= {each: self._held.pop(each) for each in found}
        return found

    def secrets(self, workflow: str, version: str) -> frozenset[str]:
        """The names of the secrets that a version of a workflow asks for."""
        for assignment, around in reversed(self._all()):
            if (assignment.workflow, assignment.workflow_version) == (workflow, version):
                return around.secrets
        return frozenset()

    def _all(self) -> list[tuple[Assignment, Around]]:
        with self._lock:
            return list(self._held.values())

    def _attempts(self, task_id: str) -> list[int]:
        with self._lock:
            return [attempt for task, attempt in self._held if task == task_id]
