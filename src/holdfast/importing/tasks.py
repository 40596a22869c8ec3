"""Imports of tasks: a table of tasks with one status each becomes tasks, needs and plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from typing import Any

from holdfast.api.holdfast import Holdfast
from holdfast.api.options import check_task_function
from holdfast.engine.surroundings.imports import PastTask, PastTree
from holdfast.importing.import_writer import check_target, take_over_trees
from holdfast.importing.report import ImportReport, Remark
from holdfast.importing.rows import (
    FAILED_BEFORE,
    ImportMistakes,
    Row,
    digest_rows,
    row_as_json,
    sort_key,
)
from holdfast.model.status import TERMINAL, PlanningPhase, Status
from holdfast.model.task import NewTask
from holdfast.store.sqlite.foreign_file import read_foreign_tables

COLUMNS = ("id", "status", "parent_task_id", "sort_order", "created_at")
# The worker of the older program has no lease here, so running tasks begin again.
STATUSES = {
    "manual": Status.IDLE,
    "draft": Status.IDLE,
    "planning": Status.IDLE,
    "planned": Status.IDLE,
    "queued": Status.QUEUED,
    "running": Status.QUEUED,
    "waiting": Status.QUEUED,
    "done": Status.DONE,
    "failed": Status.FAILED,
}
LONGEST_TITLE = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class OldTask:
    id: str
    status: str
    parent: str | None
    position: int
    scheduled_for: datetime | None
    row: Row

    @property
    def order(self) -> tuple[object, ...]:
        places = (self.row["sort_order"], self.row["created_at"])
        return (*(sort_key(each) for each in places), self.id)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportOptions:
    """The options of the caller for every imported task."""

    name: str
    agent: str
    step: str | None


def import_tasks(
    source: str | PathLike[str],
    *,
    into: Holdfast,
    name: str = "tasks",
    agent: str = "default",
    step: str | None = None,
) -> ImportReport:
    """Take over a table `tasks` of an older file, which is only read.

    Importing it again makes nothing twice: tasks are known by `name` and their ids there. They are
    for the `agent`, and carried out by the task function `step`, whose arguments are their columns.
    """
    path = check_target(source, into)
    if step is not None:
        check_task_function("step", step, into.task_names)
    rows = read_foreign_tables(path, {"tasks": COLUMNS})["tasks"]
    shape = TaskForest(_read(rows), ImportOptions(name=name, agent=agent, step=step))
    trees = [shape.tree(root) for root in shape.roots]
    was = {task.id: task.status for task in shape.tasks}
    return replace(take_over_trees(into, trees, was), remarks=tuple(shape.remarks))


def _read(rows: Sequence[Row]) -> list[OldTask]:
    mistakes = ImportMistakes("tasks")
    tasks = [_read_task(mistakes, number, row) for number, row in enumerate(rows, start=1)]
    mistakes.unique((task.id for task in tasks), "its id is there twice")
    parents = {task.id: task.parent for task in tasks}
    for task in tasks:
        if task.parent is not None and task.parent not in parents:
            mistakes.add(task.id, f"its parent {task.parent} is not there")
    for each in _find_cyclic(parents):
        mistakes.add(each, "is its own parent, near or far")
    mistakes.raise_if_any()
    return sorted(tasks, key=lambda task: task.order)


def _read_task(mistakes: ImportMistakes, number: int, row: Row) -> OldTask:
    name = mistakes.identifier(f"row {number}", "id", row["id"])
    shown = name or f"row {number}"
    parent = row["parent_task_id"]
    return OldTask(
        id=name,
        status=mistakes.status(shown, row["status"], STATUSES),
        parent=None if parent is None else mistakes.identifier(shown, "parent_task_id", parent),
        position=mistakes.number(shown, "sort_order", row["sort_order"]),
        scheduled_for=mistakes.moment(shown, "scheduled_for", row.get("scheduled_for")),
        row=row,
    )


def _find_cyclic(parents: dict[str, str | None]) -> Iterator[str]:
    """The tasks from which no chain of parents leads to a task without a parent."""
    good: set[str | None] = {None}
    for name in parents:
        path: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in good and at in parents and at not in path:
            path[at] = None
            at = parents[at]
        if at in path:
            yield name
        else:
            good.update(path)


class TaskForest:
    """The tasks of a file as trees; `remarks` grow while trees are made."""

    def __init__(self, tasks: Sequence[OldTask], chosen: ImportOptions) -> None:
        self.tasks = tasks
        self.remarks: list[Remark] = []
        self._chosen = chosen
        self._ranks = {task.id: rank for rank, task in enumerate(tasks)}
        self._children: dict[str | None, list[OldTask]] = {}
        for task in tasks:
            self._children.setdefault(task.parent, []).append(task)
        self.roots = self._children.get(None, [])

    def tree(self, root: OldTask) -> PastTree:
        past: list[PastTask] = []
        rows: list[Row] = []
        families: list[list[OldTask]] = [[root]]
        while families:
            siblings = families.pop()
            past += self._chain(siblings)
            rows += [task.row for task in siblings]
            families += [self._children[each.id] for each in siblings if each.id in self._children]
        return PastTree(tasks=tuple(past), body=digest_rows(rows))

    def _chain(self, siblings: Sequence[OldTask]) -> Iterator[PastTask]:
        """The siblings: a waiting task needs the one before it, and all unfinished ones before it.

        Another queued task came into the queue by itself: it needs the sibling before it only
        where that is done, so that it waits when the sibling is done again.
        """
        before: OldTask | None = None
        unfinished: list[OldTask] = []
        for task in siblings:
            needs: list[OldTask] = []
            if task.status == "waiting":
                needs = [*unfinished, *_if_done(before)]
                # Later siblings need this task, and through it all that it waits for.
                unfinished = []
                self._remark_idle(task, needs)
            elif STATUSES[task.status] is not Status.IDLE:
                needs = _if_done(before)
            yield self._past(task, tuple(each.id for each in needs))
            before = task
            unfinished += [task] if task.status != "done" else []

    def _remark_idle(self, task: OldTask, needs: Sequence[OldTask]) -> None:
        for need in needs:
            if need.status in {"manual", "draft"}:
                reason = f"waits for {need.id}, which is idle: enqueue that, or unblock this"
                self.remarks.append(Remark(old=task.id, reason=reason))

    def _past(self, task: OldTask, needs: tuple[str, ...]) -> PastTask:
        status, phase = STATUSES[task.status], self._phase(task)
        if task.status == "waiting" and not needs:
            status = Status.IDLE
            reason = "waits, and what it waited for is gone: it is idle; enqueue it if it may run"
            self.remarks.append(Remark(old=task.id, reason=reason))
        if task.status == "planned" and phase is PlanningPhase.ACTIVE:
            reason = "is planned and has no children: its plan is open; add some and finalize it"
            self.remarks.append(Remark(old=task.id, reason=reason))
        return PastTask(
            name=task.id,
            task=self._new(task, status),
            status=status,
            phase=phase,
            settled=phase is not PlanningPhase.NONE and status is not Status.IDLE,
            parent=task.parent,
            needs=needs,
            result=_result(task, status, plan=phase is not PlanningPhase.NONE),
            rank=self._ranks[task.id],
        )

    def _phase(self, task: OldTask) -> PlanningPhase:
        """The planning phase; a task that ended as its children did was their plan."""
        below = {child.status for child in self._children.get(task.id, [])}
        match task.status:
            case "planning":
                return PlanningPhase.ACTIVE
            case "planned":
                return PlanningPhase.FINALIZED if below else PlanningPhase.ACTIVE
            case "done" if below == {"done"}:
                return PlanningPhase.FINALIZED
            case "failed" if "failed" in below:
                return PlanningPhase.FINALIZED
            case _:
                return PlanningPhase.NONE

    def _new(self, task: OldTask, status: Status) -> NewTask:
        later = status in {Status.IDLE, Status.QUEUED} and task.status != "running"
        return NewTask(
            title=_title(task),
            step=self._chosen.step,
            agent=self._chosen.agent,
            payload=row_as_json(task.row),
            scheduled_for=task.scheduled_for if later else None,
            position=task.position,
            key=f"import:{self._chosen.name}:{task.id}",
        )


def _title(task: OldTask) -> str:
    title = str(task.row.get("title") or task.id)
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"


def _if_done(before: OldTask | None) -> list[OldTask]:
    return [before] if before is not None and before.status == "done" else []


def _result(task: OldTask, status: Status, *, plan: bool) -> Any:  # noqa: ANN401 - JSON is any value
    """The output or the error; None for a plan without one, which has those of its children."""
    if status not in TERMINAL:
        return None
    told = task.row.get("result")
    if status is Status.FAILED:
        told = task.row.get("error") or told
    if plan:
        return told or None
    return told or FAILED_BEFORE if status is Status.FAILED else told
