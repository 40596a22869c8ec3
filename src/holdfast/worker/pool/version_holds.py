"""Version holds: hold `version`, set on tasks without a function, and lifted with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from holdfast.engine.read.missing_functions import WANTED_AT_ONCE
from holdfast.model.task import Assignment
from holdfast.worker.attempt.execution import Functions
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.store_port import StorePort

LOOK_EVERY = 1.0
REMEMBERED = 1_000
# At most so many holds are lifted ahead of the worker. Another worker without the functions takes
# each of those tasks once more, and has to remember all of them until then.
LIFTED_AT_MOST = REMEMBERED // 2
# For so many seconds a full worker expects to be given a task whose hold it has lifted.
AHEAD_SECONDS = 60.0


class LeftTask(NamedTuple):
    """The version of a task that was given back, and whether its function was known."""

    seen: int
    known: bool


class VersionHolds:
    """The tasks that a worker has put on hold `version`, and those whose hold it lifts.

    A worker does not claim again the tasks that it has put on hold. When a person lifts the hold,
    every worker tries the task once more. When a worker lifts it, the others leave the task to that
    worker while it lives.
    """

    def __init__(
        self,
        store: StorePort,
        functions: Functions,
        options: WorkerOptions,
        *,
        at_once: int = WANTED_AT_ONCE,
        lifted_at_most: int = LIFTED_AT_MOST,
    ) -> None:
        self._store = store
        self._functions = functions
        self._options = options
        self._at_once = at_once
        self._lifted_at_most = lifted_at_most
        # Whether more tasks are on hold whose functions this program has.
        self.has_more = False
        # The tasks whose hold the worker has lifted while it was full, with the time.
        self.draw_task_ids: dict[str, float] = {}
        self._after = ""
        self._looked_at: float | None = None
        self._left_to_others: dict[str, LeftTask] = {}

    def begin(self, options: WorkerOptions) -> None:
        """Lift holds for the first time, under the name that the worker is registered with."""
        self._options = options
        self.lift_holds()

    def list_tasks_left(self) -> tuple[str, ...]:
        """The tasks to leave to others."""
        return tuple(self._left_to_others)

    def hold(self, assignment: Assignment, detail: str | None = None) -> None:
        """Put a task on hold until a worker with its function comes along.

        A `detail` tells why the function that is there cannot be called.

        A step without a program is not put on hold, only left to others: in a run that an earlier
        release began, it is queued among the tasks that workers run.
        """
        task_id, work = assignment.task_id, assignment.work
        external = work is not None and work.external
        if not external:
            self._store.tasks.hold(task_id, "version", detail=detail, actor="worker")
        known = self._functions.has_function(assignment.workflow, assignment.step)
        # An assignment from a server has no row; a remote worker sets no holds.
        row: Mapping[str, int] = getattr(assignment, "row", {})
        self._left_to_others[task_id] = LeftTask(row.get("version", 0), known and not external)
        while len(self._left_to_others) > REMEMBERED:
            del self._left_to_others[next(iter(self._left_to_others))]

    def lift_holds(self, *, full: bool = False) -> bool:
        """Look, not too often, for tasks on hold whose functions this program has, and lift some.

        Tasks without a program that an earlier release put on hold are lifted too. A full worker
        lifts no more than it runs at once: workers without the functions would only take the others
        and hold them again. Gives whether the worker leaves fewer tasks to others than before.
        """
        now = self._store.clock.monotonic()
        early = self._looked_at is not None and now < self._looked_at + LOOK_EVERY
        if early and (full or not self.has_more):
            return False
        freed = not early and self._forget_lifted_tasks()
        if not early:
            self._looked_at = now
        self._lift_known_tasks(self._room_ahead(now) if full else self._lifted_at_most, full=full)
        return freed

    def _room_ahead(self, now: float) -> int:
        self.draw_task_ids = {
            each: at for each, at in self.draw_task_ids.items() if now < at + AHEAD_SECONDS
        }
        return self._options.limit - len(self.draw_task_ids)

    def _forget_lifted_tasks(self) -> bool:
        passed = dict(self._left_to_others)
        if not passed:
            return False
        lifted = self._store.tasks.lifted([(each, at.seen) for each, at in passed.items()])
        for task_id in lifted:
            # Not if the task was claimed and given back again while the store was asked.
            if self._left_to_others.get(task_id) == passed[task_id]:
                self._left_to_others.pop(task_id, None)
        return bool(lifted)

    def _lift_known_tasks(self, most: int, *, full: bool) -> None:
        if most <= 0:
            return
        wanted = self._store.tasks.wanted(after=self._after, count=self._at_once)
        known = tuple(
            each
            for each in wanted.functions
            if each.external or self._functions.has_function(each.workflow, each.step)
        )
        chosen: list[str] = []

        def choose(task_id: str) -> bool:
            lifts = self._is_to_lift(task_id)
            chosen.extend([task_id] if lifts else ())
            return lifts

        if known:
            page = replace(wanted, functions=known)
            self._store.tasks.unhold_known(page, self._options, choose, most=most)
        self.has_more = len(chosen) == most
        if full:
            self.draw_task_ids |= dict.fromkeys(chosen, self._store.clock.monotonic())
        if not self.has_more:
            self._after = wanted.following

    def _is_to_lift(self, task_id: str) -> bool:
        # A task that was held although its function is known needs another program, or another run.
        passed = self._left_to_others.get(task_id)
        if passed is not None and passed.known:
            return False
        self._left_to_others.pop(task_id, None)
        return True
