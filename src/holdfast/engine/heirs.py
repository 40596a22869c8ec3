"""What counts no more, and is not done, is waited for in what it was a part of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from holdfast.engine import circles
from holdfast.engine.group import Group
from holdfast.errors import InvalidInput
from holdfast.store.database import Row


def refuse_lost(need: Row) -> None:
    """Refuse a need that nothing can meet any more."""
    if need["superseded"] and need["status"] != "done":
        reason = f"{need['id']} counts no more: what it was a part of has begun again; need that"
        raise InvalidInput("needs", reason)


def pass_on(group: Group, lost: Sequence[str], actor: str) -> list[Row]:
    """Let who needs some tasks need what begins again around those; the answer is who is free."""
    return _pass_on(group, group.tx.read("lost_needs", ids=lost), actor)


def look_again(group: Group, task_id: str, actor: str) -> list[Row] | None:
    """Pass on what an older release has left one task to need; None where there is nothing."""
    rows = [row for row in _left_to(group, [task_id]) if row["task_id"] == task_id]
    return _pass_on(group, rows, actor) if rows else None


def around(group: Group, tasks: Sequence[str]) -> set[str]:
    """What some tasks will need in place of what counts no more."""
    return {row["heir_id"] for row in _left_to(group, tasks)}


def _left_to(group: Group, tasks: Sequence[str]) -> list[Row]:
    lost = [row["id"] for row in group.tx.read("lost_needs_of", ids=tasks)]
    return group.tx.read("lost_needs", ids=lost) if lost else []


def _pass_on(group: Group, rows: Sequence[Row], actor: str) -> list[Row]:
    """Nothing is passed on to who would wait for itself: what made a task may have waited for it.

    What begins again is waited for; what an older release had left may be done by now.
    """
    freed: list[Row] = []
    for task_id, left in groupby(rows, key=itemgetter("task_id")):
        needs = list(left)
        found = {row["heir_id"]: row["heir_status"] for row in needs}
        heirs = [each for each in sorted(found) if circles.tell(group, task_id, [each]) is None]
        gone = [row["need_id"] for row in needs]
        if any(found[each] != "done" for each in heirs):
            asked = {"task_id": task_id, "ids": heirs, "linked": None}
            group.change_tasks("block_task", actor=actor, **asked)
        else:
            freed += group.change_tasks("unblock_task", task_id=task_id, ids=gone, actor=actor)
        if heirs:
            since = needs[0]["since"]
            group.tx.run("insert_needs", rows=[(task_id, each, since) for each in heirs])
        group.tx.run("delete_needs", task_id=task_id, ids=gone)
    return freed
