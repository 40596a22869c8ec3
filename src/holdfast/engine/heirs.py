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
    """Let who needs some tasks need what begins again around those; the answer is who is free.

    Nothing is passed on to who would wait for itself: what made a task may have waited for it.
    """
    freed: list[Row] = []
    rows = group.tx.read("lost_needs", ids=lost)
    for task_id, left in groupby(rows, key=itemgetter("task_id")):
        needs = list(left)
        around = sorted({row["heir_id"] for row in needs})
        heirs = [each for each in around if circles.tell(group, task_id, [each]) is None]
        gone = [row["need_id"] for row in needs]
        if heirs:
            group.change_tasks("block_task", task_id=task_id, ids=heirs, actor=actor)
            since = needs[0]["since"]
            group.tx.run("insert_needs", rows=[(task_id, each, since) for each in heirs])
        else:
            freed += group.change_tasks("unblock_task", task_id=task_id, ids=gone, actor=actor)
        group.tx.run("delete_needs", task_id=task_id, ids=gone)
    return freed
