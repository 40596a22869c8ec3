"""What counts no more, and is not done, is waited for in what it was a part of.

Links by which tasks would wait for each other in a circle: by their needs, or for a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from operator import itemgetter

from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read import step_texts
from holdfast.errors import InvalidInput
from holdfast.store.database import Row


def describe_cycle(work: UnitOfWork, task_id: str, needs: Sequence[str]) -> str | None:
    """Why a task cannot need some others: they wait for it already, or for a turn after it."""
    found = _read_waiting(work, task_id, needs, ())
    if circle := [row["id"] for row in found if row["id"] in needs]:
        through = "" if task_id in needs else f" through {min(circle)}"
        return f"{task_id} would need itself{through}: that is a cycle"
    waiting, _ = _find_waiting_in_full_loops(work, task_id, needs, found)
    behind = [row["id"] for row in waiting if row["id"] in needs]
    if not behind:
        return None
    told = f"{min(behind)} waits for its turn in a loop, which comes after {task_id} is done"
    return f"{told}: that is a cycle"


def loop_waits_for_item(work: UnitOfWork, item_id: str, loop_id: str) -> bool:
    """Whether those who have all the places in a loop wait for an item of it that has none."""
    return (
        loop_id
        in _find_waiting_in_full_loops(work, item_id, (), _read_waiting(work, item_id, (), ()))[1]
    )


def _find_waiting_in_full_loops(
    work: UnitOfWork, task_id: str, needs: Sequence[str], found: list[Row]
) -> tuple[list[Row], set[str]]:
    """What waits for a task, also because nobody who has a place in a loop gives it up before.

    An item that has begun keeps its place until it is done. Where as many of them as may be under
    way wait for the task, or for an item that has none, no other begins: all loops are taken to be
    so until one is not. The answer names those that are.
    """
    places: dict[str, int] = {}
    while fresh := _count_begun_items(found).keys() - places.keys():
        places |= _read_parallel(work, fresh)
        found = _read_waiting(work, task_id, needs, places)
    full = set(places)
    while loose := {loop for loop in full if _count_begun_items(found)[loop] < places[loop]}:
        full -= loose
        found = _read_waiting(work, task_id, needs, full)
    return found, full


def _read_waiting(
    work: UnitOfWork, task_id: str, needs: Sequence[str], full: Collection[str]
) -> list[Row]:
    asked = {"task_id": task_id, "ids": needs, "loops": sorted(full)}
    return work.tx.read("reachable_needs", **asked)


def _count_begun_items(found: Sequence[Row]) -> Counter[str]:
    """How many of the items that wait have begun, by their loops."""
    return Counter(row["loop_id"] for row in found if row["loop_id"] is not None)


def _read_parallel(work: UnitOfWork, loops: Collection[str]) -> dict[str, int]:
    """How many items of some loops may be under way at once."""
    rows = work.tx.read("tasks_by_id", ids=sorted(loops))
    return {row["id"]: step_texts.step_of(work, row).parallel for row in rows}


def refuse_superseded_need(need: Row) -> None:
    """Refuse a need that nothing can meet any more."""
    if need["superseded"] and need["status"] != "done":
        reason = f"{need['id']} counts no more: what it was a part of has begun again; need that"
        raise InvalidInput("needs", reason)


def replace_needs(work: UnitOfWork, lost: Sequence[str], actor: str) -> list[Row]:
    """Let who needs some tasks need what begins again around those; the answer is who is free."""
    return _replace_rows(work, work.tx.read("lost_needs", ids=lost), actor)


def replace_needs_of(work: UnitOfWork, task_id: str, actor: str) -> list[Row] | None:
    """Pass on what an older release has left one task to need; None where there is nothing."""
    rows = [row for row in _superseded_needs_of(work, [task_id]) if row["task_id"] == task_id]
    return _replace_rows(work, rows, actor) if rows else None


def find_replacements(work: UnitOfWork, tasks: Sequence[str]) -> set[str]:
    """What some tasks will need in place of what counts no more."""
    return {row["heir_id"] for row in _superseded_needs_of(work, tasks)}


def _superseded_needs_of(work: UnitOfWork, tasks: Sequence[str]) -> list[Row]:
    lost = [row["id"] for row in work.tx.read("lost_needs_of", ids=tasks)]
    return work.tx.read("lost_needs", ids=lost) if lost else []


def _replace_rows(work: UnitOfWork, rows: Sequence[Row], actor: str) -> list[Row]:
    """Nothing is passed on to who would wait for itself: what made a task may have waited for it.

    What begins again is waited for; what an older release had left may be done by now.
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
