"""Cycles of needs: needs by which tasks would wait for each other, directly or in a full loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read import step_texts
from holdfast.store.database import Row


def describe_cycle(work: UnitOfWork, task_id: str, needs: Sequence[str]) -> str | None:
    """Say why a task cannot need some others: they wait for it, or in a loop behind it."""
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
    """Whether all items under way in a loop wait for an item of it that has not started."""
    return (
        loop_id
        in _find_waiting_in_full_loops(work, item_id, (), _read_waiting(work, item_id, (), ()))[1]
    )


def _find_waiting_in_full_loops(
    work: UnitOfWork, task_id: str, needs: Sequence[str], found: list[Row]
) -> tuple[list[Row], set[str]]:
    """Find the tasks that wait for a task, also through loops that are full until it is done.

    An item that has begun stays under way until it is done. If as many items as may be under way at
    once wait for the task, or for an item that has not begun, no other item of the loop begins. All
    loops are taken to be full in this way until one is found not to be. Returns the waiting tasks,
    and the loops that are full.
    """
    parallel: dict[str, int] = {}
    while fresh := _count_begun_items(found).keys() - parallel.keys():
        parallel |= _read_parallel(work, fresh)
        found = _read_waiting(work, task_id, needs, parallel)
    full = set(parallel)
    while loose := {loop for loop in full if _count_begun_items(found)[loop] < parallel[loop]}:
        full -= loose
        found = _read_waiting(work, task_id, needs, full)
    return found, full


def _read_waiting(
    work: UnitOfWork, task_id: str, needs: Sequence[str], full: Collection[str]
) -> list[Row]:
    asked = {"task_id": task_id, "ids": needs, "loops": sorted(full)}
    return work.tx.read("reachable_needs", **asked)


def _count_begun_items(found: Sequence[Row]) -> Counter[str]:
    """How many of the waiting items have begun, for each loop."""
    return Counter(row["loop_id"] for row in found if row["loop_id"] is not None)


def _read_parallel(work: UnitOfWork, loops: Collection[str]) -> dict[str, int]:
    """How many items may be under way at once, for each loop."""
    rows = work.tx.read("tasks_by_id", ids=sorted(loops))
    return {row["id"]: step_texts.read_step(work, row).parallel for row in rows}
