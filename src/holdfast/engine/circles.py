"""Links by which tasks would wait for each other in a circle: by their needs, or for a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from holdfast.engine import references
from holdfast.engine.group import Group
from holdfast.store.database import Row


def tell(group: Group, task_id: str, needs: Sequence[str]) -> str | None:
    """Why a task cannot need some others: they wait for it already, or for a turn after it."""
    found = _waiting(group, task_id, needs, ())
    if any(row["id"] in needs for row in found):
        return f"{task_id} would need itself: that is a cycle"
    behind = [row["id"] for row in _behind(group, task_id, needs, found) if row["id"] in needs]
    if not behind:
        return None
    told = f"{min(behind)} waits for its turn in a loop, which comes after {task_id} is done"
    return f"{told}: that is a cycle"


def _behind(group: Group, task_id: str, needs: Sequence[str], found: list[Row]) -> list[Row]:
    """What waits for a task, also because nobody who has a place in a loop gives it up before.

    An item that has begun keeps its place until it is done. Where each of those waits for the task,
    or for an item that has none, no other begins: all loops are taken to be so until one is not.
    """
    full: dict[str, int] = {}
    seen: set[str] = set()
    while fresh := _begun(found).keys() - seen:
        seen |= fresh
        full |= _full(group, fresh)
        found = _waiting(group, task_id, needs, full)
    while loose := {loop for loop, items in full.items() if _begun(found)[loop] < items}:
        full = {loop: items for loop, items in full.items() if loop not in loose}
        found = _waiting(group, task_id, needs, full)
    return found


def _waiting(group: Group, task_id: str, needs: Sequence[str], full: Collection[str]) -> list[Row]:
    asked = {"task_id": task_id, "ids": needs, "loops": sorted(full)}
    return group.tx.read("reachable_needs", **asked)


def _begun(found: Sequence[Row]) -> Counter[str]:
    """How many of the items that wait have begun, by their loops."""
    return Counter(row["loop_id"] for row in found if row["loop_id"] is not None)


def _full(group: Group, loops: Collection[str]) -> dict[str, int]:
    """The loops with as many items under way as they may have, and how many those are."""
    rows = group.tx.read("items_under_way", ids=sorted(loops))
    return {
        row["id"]: row["items"]
        for row in rows
        if row["items"] >= references.step_of(group, row).parallel
    }
