"""Phased tasks: the older shape with a column each for lifecycle, planning and blocking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from holdfast.engine.surroundings.imports import PastTask, PastTree
from holdfast.importing.report import Remark
from holdfast.importing.rows import ImportMistakes, Row
from holdfast.importing.task_forest import ImportOptions, OldTask, TaskForest
from holdfast.model.status import TERMINAL, PlanningPhase, Status

COLUMNS = ("planning_phase", "blocked_by_task_id")
# The older program kept the number; files that were written by hand may have the name.
PHASES: Mapping[object, PlanningPhase] = {
    None: PlanningPhase.NONE,
    **dict(enumerate(PlanningPhase)),
    **{phase.value: phase for phase in PlanningPhase},
}


def has_phases(columns: Sequence[str]) -> bool:
    """Whether a table of tasks with these columns is of the later shape."""
    return all(name in columns for name in COLUMNS)


def read_phase(mistakes: ImportMistakes, name: str, row: Row) -> PlanningPhase:
    told = row["planning_phase"]
    phase = PHASES.get(told.lower() if isinstance(told, str) else told)
    if phase is None:
        known = "0 (none), 1 (active) or 2 (finalized)"
        mistakes.add(name, f"its planning_phase is {told!r}, and not {known}")
    return phase or PlanningPhase.NONE


def check_blocking(mistakes: ImportMistakes, tasks: Sequence[OldTask]) -> None:
    """Note tasks that are blocked by one that is not there, or that ends only after them."""
    parents = {task.id: task.parent for task in tasks}
    for task in tasks:
        if task.blocked_by is None:
            continue
        if task.blocked_by not in parents:
            mistakes.add(task.id, f"is blocked by {task.blocked_by}, which is not there")
        elif task.blocked_by in _list_above(task, parents):
            mistakes.add(task.id, f"is blocked by {task.blocked_by}, which it is a part of")


def _list_above(task: OldTask, parents: Mapping[str, str | None]) -> list[str]:
    """The tasks that a task is a part of; a circle of parents is told elsewhere."""
    above: list[str] = []
    at = task.parent
    while at is not None and at not in above:
        above.append(at)
        at = parents.get(at)
    return above


class PhasedForest(TaskForest):
    """Tasks that say by themselves which task blocks them, and how far their plan is."""

    statuses: ClassVar[Mapping[str, Status]] = {
        "idle": Status.IDLE,
        "queued": Status.QUEUED,
        "running": Status.QUEUED,
        "done": Status.DONE,
        "failed": Status.FAILED,
        "cancelled": Status.CANCELLED,
    }

    def __init__(self, tasks: Sequence[OldTask], chosen: ImportOptions) -> None:
        super().__init__(tasks, chosen)
        self._by_id = {task.id: task for task in tasks}
        self._parents = {task.id: task.parent for task in tasks}

    def trees(self) -> list[PastTree]:
        """Trees of tasks; those with a task that is blocked by one of another tree go together."""
        together = {root.id: root.id for root in self.roots}

        def find(name: str) -> str:
            while together[name] != name:
                name = together[name]
            return name

        for task in self.tasks:
            if task.blocked_by is not None:
                together[find(self._top(task))] = find(self._top(self._by_id[task.blocked_by]))
        units: dict[str, list[OldTask]] = {}
        for root in self.roots:
            units.setdefault(find(root.id), []).append(root)
        return [self._tree(roots) for roots in units.values()]

    def _top(self, task: OldTask) -> str:
        return [task.id, *_list_above(task, self._parents)][-1]

    def _chain(self, siblings: Sequence[OldTask]) -> Iterator[PastTask]:
        for task in siblings:
            status, phase = self._find_status(task), self._phase(task)
            blocking = () if task.blocked_by is None else (task.blocked_by,)
            # What had ended there did not wait for it.
            early = status in TERMINAL and any(
                self._find_status(self._by_id[each]) is not Status.DONE for each in blocking
            )
            self._remark(task, status, phase)
            yield self._make(
                task,
                status,
                phase,
                needs=() if early else blocking,
                late=blocking if early else (),
            )

    def _find_status(self, task: OldTask) -> Status:
        own = self.statuses[task.status]
        if own in TERMINAL:
            return own
        if self._find_cancelled_above(task) is not None:
            return Status.CANCELLED
        # The children of a plan are what is queued.
        return own if task.phase is PlanningPhase.NONE else Status.IDLE

    def _find_cancelled_above(self, task: OldTask) -> str | None:
        above = _list_above(task, self._parents)
        return next((each for each in above if self._by_id[each].status == "cancelled"), None)

    def _phase(self, task: OldTask) -> PlanningPhase:
        """The phase of a plan; a task that did not end as its children did was none."""
        below = {self._find_status(child) for child in self._children.get(task.id, [])}
        if task.phase is PlanningPhase.NONE:
            return PlanningPhase.NONE
        match self._find_status(task):
            case Status.DONE:
                planned = below == {Status.DONE}
            case Status.FAILED:
                planned = Status.FAILED in below
            case Status.CANCELLED:
                planned = False
            case _ if task.phase is PlanningPhase.ACTIVE or not below:
                return PlanningPhase.ACTIVE
            case _:
                planned = True
        return PlanningPhase.FINALIZED if planned else PlanningPhase.NONE

    def _remark(self, task: OldTask, status: Status, phase: PlanningPhase) -> None:
        own = self.statuses[task.status]
        if status is Status.CANCELLED and own is not status:
            above = self._find_cancelled_above(task)
            reason = f"is a part of {above}, which is cancelled: it is cancelled too"
            self.remarks.append(Remark(old=task.id, reason=reason))
        elif task.phase is PlanningPhase.FINALIZED and phase is PlanningPhase.ACTIVE:
            reason = "is planned and has no children: its plan is open; add some and finalize it"
            self.remarks.append(Remark(old=task.id, reason=reason))
        blocking = self._by_id.get(task.blocked_by or "")
        if blocking is None or status in TERMINAL:
            return
        of_blocking = self._find_status(blocking)
        if of_blocking is Status.IDLE and self._phase(blocking) is PlanningPhase.NONE:
            reason = f"waits for {blocking.id}, which is idle: enqueue that, or unblock this"
            self.remarks.append(Remark(old=task.id, reason=reason))
        elif of_blocking is Status.CANCELLED:
            reason = f"waits for {blocking.id}, which is cancelled: retry that, or unblock this"
            self.remarks.append(Remark(old=task.id, reason=reason))
