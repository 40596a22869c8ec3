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


def tell(work: UnitOfWork, task_id: str, needs: Sequence[str]) -> str | None:
    """Why a task cannot need some others: they wait for it already, or for a turn after it."""
    found = _waiting(work, task_id, needs, ())
    if circle := [row["id"] for row in found if row["id"] in needs]:
        through = "" if task_id in needs else f" through {min(circle)}"
        return f"{task_id} would need itself{through}: that is a cycle"
    waiting, _ = _behind(work, task_id, needs, found)
    behind = [row["id"] for row in waiting if row["id"] in needs]
    if not behind:
        return None
    told = f"{min(behind)} waits for its turn in a loop, which comes after {task_id} is done"
    return f"{told}: that is a cycle"


def waits_for_itself(work: UnitOfWork, item_id: str, loop_id: str) -> bool:
    """Whether those who have all the places in a loop wait for an item of it that has none."""
    return loop_id in _behind(work, item_id, (), _waiting(work, item_id, (), ()))[1]


def _behind(
    work: UnitOfWork, task_id: str, needs: Sequence[str], found: list[Row]
) -> tuple[list[Row], set[str]]:
    """What waits for a task, also because nobody who has a place in a loop gives it up before.

    An item that has begun keeps its place until it is done. Where as many of them as may be under
    way wait for the task, or for an item that has none, no other begins: all loops are taken to be
    so until one is not. The answer names those that are.
    """
    places: dict[str, int] = {}
    while fresh := _begun(found).keys() - places.keys():
        places |= _places(work, fresh)
        found = _waiting(work, task_id, needs, places)
    full = set(places)
    while loose := {loop for loop in full if _begun(found)[loop] < places[loop]}:
        full -= loose
        found = _waiting(work, task_id, needs, full)
    return found, full


def _waiting(
    work: UnitOfWork, task_id: str, needs: Sequence[str], full: Collection[str]
) -> list[Row]:
    asked = {"task_id": task_id, "ids": needs, "loops": sorted(full)}
    return work.tx.read("reachable_needs", **asked)


def _begun(found: Sequence[Row]) -> Counter[str]:
    """How many of the items that wait have begun, by their loops."""
    return Counter(row["loop_id"] for row in found if row["loop_id"] is not None)


def _places(work: UnitOfWork, loops: Collection[str]) -> dict[str, int]:
    """How many items of some loops may be under way at once."""
    rows = work.tx.read("tasks_by_id", ids=sorted(loops))
    return {row["id"]: step_texts.step_of(work, row).parallel for row in rows}


def refuse_lost(need: Row) -> None:
    """Refuse a need that nothing can meet any more."""
    if need["superseded"] and need["status"] != "done":
        reason = f"{need['id']} counts no more: what it was a part of has begun again; need that"
        raise InvalidInput("needs", reason)


def pass_on(work: UnitOfWork, lost: Sequence[str], actor: str) -> list[Row]:
    """Let who needs some tasks need what begins again around those; the answer is who is free."""
    return _pass_on(work, work.tx.read("lost_needs", ids=lost), actor)


def look_again(work: UnitOfWork, task_id: str, actor: str) -> list[Row] | None:
    """Pass on what an older release has left one task to need; None where there is nothing."""
    rows = [row for row in _left_to(work, [task_id]) if row["task_id"] == task_id]
    return _pass_on(work, rows, actor) if rows else None


def around(work: UnitOfWork, tasks: Sequence[str]) -> set[str]:
    """What some tasks will need in place of what counts no more."""
    return {row["heir_id"] for row in _left_to(work, tasks)}


def _left_to(work: UnitOfWork, tasks: Sequence[str]) -> list[Row]:
    lost = [row["id"] for row in work.tx.read("lost_needs_of", ids=tasks)]
    return work.tx.read("lost_needs", ids=lost) if lost else []


def _pass_on(work: UnitOfWork, rows: Sequence[Row], actor: str) -> list[Row]:
    """Nothing is passed on to who would wait for itself: what made a task may have waited for it.

    What begins again is waited for; what an older release had left may be done by now.
    """
    freed: list[Row] = []
    for task_id, left in groupby(rows, key=itemgetter("task_id")):
        needs = list(left)
        found = {row["heir_id"]: row["heir_status"] for row in needs}
        heirs = [each for each in sorted(found) if tell(work, task_id, [each]) is None]
        gone = [row["need_id"] for row in needs]
        if any(found[each] != "done" for each in heirs):
            asked = {"task_id": task_id, "ids": heirs, "linked": None}
            work.change_tasks("block_task", actor=actor, **asked)
        else:
            freed += work.change_tasks("unblock_task", task_id=task_id, ids=gone, actor=actor)
        if heirs:
            since = needs[0]["since"]
            work.tx.run("insert_needs", rows=[(task_id, each, since) for each in heirs])
        work.tx.run("delete_needs", task_id=task_id, ids=gone)
    return freed
