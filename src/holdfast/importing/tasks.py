"""Imports of tasks: a table of tasks becomes tasks, needs and plans, in either older shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike

from holdfast.api.holdfast import Holdfast
from holdfast.api.options import check_task_function
from holdfast.importing.import_writer import check_target, take_over_trees
from holdfast.importing.phased_tasks import PhasedForest, check_blocking, has_phases, read_phase
from holdfast.importing.report import ImportReport
from holdfast.importing.rows import ImportMistakes, Row
from holdfast.importing.task_forest import ImportOptions, OldTask, TaskForest
from holdfast.store.sqlite.foreign_file import read_foreign_tables

COLUMNS = ("id", "status", "parent_task_id", "sort_order", "created_at")


def import_tasks(  # noqa: PLR0913 - what may differ from one import to the next
    source: str | PathLike[str],
    *,
    into: Holdfast,
    name: str = "tasks",
    agent: str = "default",
    step: str | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """Take over a table `tasks` of an older file, which is only read.

    Importing it again makes nothing twice: tasks are known by `name` and their ids there. They are
    for the `agent`, and carried out by the task function `step`, whose arguments are their columns.
    A `dry_run` reports what would be made, and makes nothing.
    """
    path = check_target(source, into)
    if step is not None:
        check_task_function("step", step, into.task_names)
    rows = read_foreign_tables(path, {"tasks": COLUMNS})["tasks"]
    kind = PhasedForest if rows and has_phases(list(rows[0])) else TaskForest
    forest = kind(_read(rows, kind), ImportOptions(name=name, agent=agent, step=step))
    trees = forest.trees()
    was = {task.id: task.status for task in forest.tasks}
    report = take_over_trees(into, trees, was, dry_run=dry_run)
    return replace(report, remarks=tuple(forest.remarks))


def _read(rows: Sequence[Row], kind: type[TaskForest]) -> list[OldTask]:
    mistakes = ImportMistakes("tasks")
    tasks = [_read_task(mistakes, number, row, kind) for number, row in enumerate(rows, start=1)]
    mistakes.unique((task.id for task in tasks), "its id is there twice")
    parents = {task.id: task.parent for task in tasks}
    for task in tasks:
        if task.parent is not None and task.parent not in parents:
            mistakes.add(task.id, f"its parent {task.parent} is not there")
    for each in _find_cyclic(parents):
        mistakes.add(each, "is its own parent, near or far")
    check_blocking(mistakes, tasks)
    for each in _find_cyclic({task.id: task.blocked_by for task in tasks}):
        mistakes.add(each, "is blocked by itself, near or far")
    mistakes.raise_if_any()
    return sorted(tasks, key=lambda task: task.order)


def _read_task(mistakes: ImportMistakes, number: int, row: Row, kind: type[TaskForest]) -> OldTask:
    name = mistakes.identifier(f"row {number}", "id", row["id"])
    shown = name or f"row {number}"

    def read_other(column: str) -> str | None:
        other = row[column]
        return None if other is None else mistakes.identifier(shown, column, other)

    task = OldTask(
        id=name,
        status=mistakes.status(shown, row["status"], kind.statuses),
        parent=read_other("parent_task_id"),
        position=mistakes.number(shown, "sort_order", row["sort_order"]),
        scheduled_for=mistakes.moment(shown, "scheduled_for", row.get("scheduled_for")),
        row=row,
    )
    if kind is not PhasedForest:
        return task
    phase = read_phase(mistakes, shown, row)
    return replace(task, phase=phase, blocked_by=read_other("blocked_by_task_id"))


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
