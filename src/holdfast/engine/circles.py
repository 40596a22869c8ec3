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
    if circle := [row["id"] for row in found if row["id"] in needs]:
        through = "" if task_id in needs else f" through {min(circle)}"
        return f"{task_id} would need itself{through}: that is a cycle"
    waiting, _ = _behind(group, task_id, needs, found)
    behind = [row["id"] for row in waiting if row["id"] in needs]
    if not behind:
        return None
    told = f"{min(behind)} waits for its turn in a loop, which comes after {task_id} is done"
    return f"{told}: that is a cycle"


def waits_for_itself(group: Group, item_id: str, loop_id: str) -> bool:
    """Whether those who have all the places in a loop wait for an item of it that has none."""
    return loop_id in _behind(group, item_id, (), _waiting(group, item_id, (), ()))[1]


def _behind(
    group: Group, task_id: str, needs: Sequence[str], found: list[Row]
) -> tuple[list[Row], set[str]]:
    """What waits for a task, also because nobody who has a place in a loop gives it up before.

    An item that has begun keeps its place until it is done. Where as many of them as may be under
    way wait for the task, or for an item that has none, no other begins: all loops are taken to be
    so until one is not. The answer names those that are.
    """
    places: dict[str, int] = {}
    while fresh := _begun(found).keys() - places.keys():
        places |= _places(group, fresh)
        found = _waiting(group, task_id, needs, places)
    full = set(places)
    while loose := {loop for loop in full if _begun(found)[loop] < places[loop]}:
        full -= loose
        found = _waiting(group, task_id, needs, full)
    return found, full


def _waiting(group: Group, task_id: str, needs: Sequence[str], full: Collection[str]) -> list[Row]:
    asked = {"task_id": task_id, "ids": needs, "loops": sorted(full)}
    return group.tx.read("reachable_needs", **asked)


def _begun(found: Sequence[Row]) -> Counter[str]:
    """How many of the items that wait have begun, by their loops."""
    return Counter(row["loop_id"] for row in found if row["loop_id"] is not None)


def _places(group: Group, loops: Collection[str]) -> dict[str, int]:
    """How many items of some loops may be under way at once."""
    rows = group.tx.read("tasks_by_id", ids=sorted(loops))
    return {row["id"]: references.step_of(group, row).parallel for row in rows}
