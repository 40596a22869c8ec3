"""State of tasks that their own rows do not show: counts of groups, holds, verdicts, and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.model.moment import to_datetime
from holdfast.model.status import Hold, Status, TaskKind
from holdfast.store.database import Row, Transaction

if TYPE_CHECKING:
    # The records of tasks are slow to load, and a page of runs needs none.
    from holdfast.model.task import Task

_LOST_STATUSES = frozenset({Status.FAILED.value, Status.CANCELLED.value})


def read_tasks_with_state(tx: Transaction, rows: Sequence[Row]) -> list[Task]:
    """Read the tasks of some rows; an open group with how many of its children are done."""
    from holdfast.engine.read.task_records import read_task  # noqa: PLC0415 - slow to load

    tasks = add_derived_states(tx, [read_task(row) for row in rows])
    groups = [task.id for task in tasks if task.kind is TaskKind.GROUP and not task.terminal]
    if not groups:
        return tasks
    counted = {
        row["parent_id"]: (row["done"], row["whole"])
        for row in tx.read("count_children", ids=groups)
    }
    counted |= count_done_in_called_runs(tx, tasks)
    return [_with_counts(task, *counted.get(task.id, (0, 0))) for task in tasks]


def add_derived_states(tx: Transaction, tasks: list[Task]) -> list[Task]:
    """Add to tasks the states that their own rows do not show."""
    return _add_current_titles(
        tx, _add_usage_limits(tx, _add_need_lost(tx, _add_verifying(tx, tasks)))
    )


def _add_current_titles(tx: Transaction, tasks: list[Task]) -> list[Task]:
    """Replace the titles of tasks that wait anew, which were made from outputs that are gone."""
    again = [task.id for task in tasks if _may_have_stale_title(task)]
    if not again:
        return tasks
    # The texts of steps, and the graphs that have them, are slow to load, and seldom needed.
    from holdfast.engine.read.step_texts import render_current_titles  # noqa: PLC0415

    told = render_current_titles(tx, tx.read("tasks_by_id", ids=again))
    return [replace(task, title=told.get(task.id, task.title)) for task in tasks]


def _may_have_stale_title(task: Task) -> bool:
    # The title of a loop is that of its items.
    loop = task.kind is TaskKind.GROUP and task.calls is None
    return task.blocked and task.generation > 1 and task.step is not None and not loop


def count_done_in_called_runs(tx: Transaction, tasks: Iterable[Task]) -> dict[str, tuple[int, int]]:
    """Count by task how much is done of the called run that it waits for, and of how much."""
    waiting = {
        str(task.waits_for): task.id
        for task in tasks
        if task.calls is not None and task.waits_for is not None and not task.terminal
    }
    if not waiting:
        return {}
    counted = count_done_in_runs(tx, sorted(waiting))
    return {waiting[run]: counts for run, counts in counted.items()}


def count_done_in_runs(tx: Transaction, runs: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count the tasks of runs that are done, and all; groups and past rounds do not count."""
    rows = tx.read("progress_of_runs", ids=runs)
    return {row["run_id"]: (int(row["done"]), int(row["total"])) for row in rows}


def _add_verifying(tx: Transaction, tasks: list[Task]) -> list[Task]:
    """Add to steps and groups in runs whether they wait for a verdict."""
    asked = [task.id for task in tasks if task.run_id is not None and _may_be_verified(task)]
    waiting = {row["id"] for row in tx.read("being_verified", ids=asked)} if asked else set()
    return [replace(task, verifying=True) if task.id in waiting else task for task in tasks]


def _add_need_lost(tx: Transaction, tasks: list[Task]) -> list[Task]:
    """Add to tasks without a run whether a need failed or was cancelled; runs are held whole."""
    asked = [task.id for task in tasks if task.blocked and task.run_id is None]
    unmet = tx.read("unmet_needs", ids=asked) if asked else ()
    lost = {row["task_id"] for row in unmet if row["status"] in _LOST_STATUSES}
    return [replace(task, need_lost=True) if task.id in lost else task for task in tasks]


def _add_usage_limits(tx: Transaction, tasks: list[Task]) -> list[Task]:
    """Add a hold to tasks that only the usage limit of their agent keeps from being claimed."""
    if not any(map(_may_be_limited, tasks)):
        return tasks
    limits = read_usage_limits(tx)
    return [_with_limit(task, limits) if task.agent in limits else task for task in tasks]


def read_usage_limits(tx: Transaction) -> dict[str, datetime]:
    """Read until when agents are at their usage limits."""
    return {row["agent"]: to_datetime(row["until"]) for row in tx.read("limits_now")}


def _may_be_limited(task: Task) -> bool:
    lifts = task.state == "held" and task.held_until is not None
    return task.kind is TaskKind.WORK and (lifts or task.state == "ready")


def _with_limit(task: Task, limits: Mapping[str, datetime]) -> Task:
    if not _may_be_limited(task):
        return task
    until = max(limits[task.agent], task.held_until or limits[task.agent])
    return replace(task, holds=task.holds | Hold.LIMIT, held_until=until)


def _may_be_verified(task: Task) -> bool:
    ended = task.status is Status.DONE and not task.superseded
    return ended or (task.kind is TaskKind.GROUP and not task.terminal)


def _with_counts(task: Task, done: int, whole: int) -> Task:
    if task.kind is not TaskKind.GROUP or task.terminal:
        return task
    # An expanded loop has made only the items that begin soon.
    return replace(task, children_done=done, children=whole if task.total is None else task.total)


def name_tasks(tx: Transaction, ids: Iterable[str]) -> dict[str, str]:
    """Name some tasks: in a run by address, `build.2.implement`, else by title."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    known = {row["id"]: row for row in tx.read("places_of", ids=wanted)}
    return {each: build_task_name(known, known[each]) for each in wanted if each in known}


def build_task_name(known: Mapping[str, Row], row: Row) -> str:
    """Build the name of a task from the tasks around it."""
    if row["run_id"] is None:
        return str(row["title"])
    own = number_of_item(row["item"]) if _is_item(row) else str(row["step"] or row["title"])
    above = known.get(row["parent_id"] or "")
    return own if above is None else f"{build_task_name(known, above)}.{own}"


def number_of_item(place: int) -> str:
    """The number that people give an item by its place in the list: they count from 1."""
    return str(place + 1)


def place_of_item(number: str) -> int:
    return int(number) - 1


def _is_item(row: Row) -> bool:
    return row["kind"] == TaskKind.GROUP and row["item"] is not None
