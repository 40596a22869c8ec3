"""Superseded needs: a need on a superseded task moves to the group that replaced it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.state.need_cycles import describe_cycle
from holdfast.errors import InvalidInput
from holdfast.store.database import Row


def refuse_superseded_need(need: Row) -> None:
    """Refuse a need on a superseded task that is not done, which nothing can meet any more."""
    if need["superseded"] and need["status"] != "done":
        reason = f"{need['id']} counts no more: what it was a part of has begun again; need that"
        raise InvalidInput("needs", reason)


def replace_needs(work: UnitOfWork, lost: Sequence[str], actor: str) -> list[Row]:
    """Move the needs on some superseded tasks to the groups around them.

    Return the tasks that got free.
    """
    return _replace_rows(work, work.tx.read("lost_needs", ids=lost), actor)


def replace_needs_of(work: UnitOfWork, task_id: str, actor: str) -> list[Row] | None:
    """Move the superseded needs of one task, left by an older release; None if there are none."""
    rows = [row for row in _superseded_needs_of(work, [task_id]) if row["task_id"] == task_id]
    return _replace_rows(work, rows, actor) if rows else None


def find_replacements(work: UnitOfWork, tasks: Sequence[str]) -> set[str]:
    """The groups that some tasks will need in place of superseded tasks."""
    return {row["heir_id"] for row in _superseded_needs_of(work, tasks)}


def _superseded_needs_of(work: UnitOfWork, tasks: Sequence[str]) -> list[Row]:
    lost = [row["id"] for row in work.tx.read("lost_needs_of", ids=tasks)]
    return work.tx.read("lost_needs", ids=lost) if lost else []


def _replace_rows(work: UnitOfWork, rows: Sequence[Row], actor: str) -> list[Row]:
    """Replace needs, except where a task would wait for itself, as one that the group has made.

    A replacement that begins again is waited for; one that an older release left may be done by
    now.
    """
    freed: list[Row] = []
    for task_id, moved in groupby(rows, key=itemgetter("task_id")):
        needs = list(moved)
        found = {row["heir_id"]: row["heir_status"] for row in needs}
        replacements = [
            each for each in sorted(found) if describe_cycle(work, task_id, [each]) is None
        ]
        gone = [row["need_id"] for row in needs]
        if any(found[each] != "done" for each in replacements):
            asked = {"task_id": task_id, "ids": replacements, "linked": None}
            work.change_tasks("block_task", actor=actor, **asked)
        else:
            freed += work.change_tasks("unblock_task", task_id=task_id, ids=gone, actor=actor)
        if replacements:
            since = needs[0]["since"]
            work.tx.run("insert_needs", rows=[(task_id, each, since) for each in replacements])
        work.tx.run("delete_needs", task_id=task_id, ids=gone)
    return freed
