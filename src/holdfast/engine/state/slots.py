"""Slots: each concurrency key has one counter row, which guarded updates change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.engine.core.task_rows import RUN_PREFIX
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.store.database import Contended, Row

WITHDRAWN_AT_ONCE = 2_000
# Each line has two parts: tasks that workers run, and bare tasks.
BARE_AND_NOT = (False, True)


def take_slots(work: UnitOfWork, claimed: Iterable[Row]) -> None:
    """Count claimed tasks against their keys, whose counters this transaction holds already."""
    wanted = Counter(row["concurrency_key"] for row in claimed if row["concurrency_key"])
    work.keys_to_withdraw.update(wanted)
    if wanted and len(work.tx.write("take_slots", rows=sorted(wanted.items()))) != len(wanted):
        message = "a concurrency key was filled by another process"
        raise Contended(message)


def lock_slots(work: UnitOfWork, keys: Iterable[str]) -> None:
    """Lock counters for the rest of the transaction; wait for one only in the order of keys.

    If a key that sorts later is locked already, waiting could deadlock: the unit of work begins
    again.
    """
    new = sorted(set(keys) - work.slots)
    if new and new[0] < max(work.slots, default=""):
        if len(work.tx.read("try_slots", keys=new)) != len(new):
            message = "a concurrency key is in use by another process"
            raise Contended(message)
    elif new:
        work.tx.run("lock_slots", keys=new)
    work.slots.update(new)


def free_slots(work: UnitOfWork) -> None:
    """Free the slots of ended tasks and runs, and admit the oldest waiting runs."""
    if not work.freed:
        return
    freed, work.freed = work.freed, Counter()
    keys = sorted(freed)
    lock_slots(work, keys)
    work.tx.write("free_slots", rows=sorted(freed.items()))
    work.wake()
    for key in keys:
        _admit_waiting(work, key, freed[key])


def _admit_waiting(work: UnitOfWork, key: str, count: int) -> None:
    """Admit the oldest runs that wait for a key with room; tasks are readmitted later, once."""
    if key.startswith(RUN_PREFIX):
        admit_runs(work, key, count)
    else:
        work.may_readmit_tasks = True


def readmit_tasks(work: UnitOfWork) -> bool:
    """Readmit withdrawn tasks whose keys have room; return whether any task is withdrawn.

    The first tasks of each line are readmitted, because no worker may serve the line of the oldest
    task. Once in a unit of work is enough: a task that is not claimed is withdrawn again at its
    end.
    """
    work.may_readmit_tasks = False
    rows = work.tx.read("parked_keys")
    for row in rows:
        if row["room"] > 0:
            _readmit_tasks_of_key(work, row["key"], row["room"])
    return bool(rows)


def _readmit_tasks_of_key(work: UnitOfWork, key: str, count: int) -> None:
    found = work.tx.read("parked_lines", key=key)
    ready_lines = [(row["agent"], row["tags"], half) for row in found for half in BARE_AND_NOT]
    if ready_lines and work.tx.write("unpark_tasks", rows=ready_lines, key=key, count=count):
        work.wake()
        # More tasks may be in the ready index now than the key has room for.
        work.keys_to_withdraw.add(key)


def withdraw_tasks(work: UnitOfWork) -> int:
    """Withdraw the tasks that wait for a full key, so that no claim walks past them.

    Only keys that this unit of work filled or added tasks to are read. Returns how many tasks were
    withdrawn, at most `WITHDRAWN_AT_ONCE`.
    """
    if not work.keys_to_withdraw:
        return 0
    keys = sorted(work.keys_to_withdraw)
    return len(work.tx.write("park_tasks", keys=keys, count=WITHDRAWN_AT_ONCE))


def admit_runs(work: UnitOfWork, key: str, count: int) -> None:
    """Lift hold slot from the oldest runs that wait for a key, as many as it has room for."""
    lock_slots(work, [key])
    for row in work.tx.read("waiting_runs", key=key, count=count):
        if not work.tx.write("take_slots", rows=[(key, 1)]):
            return
        work.change_runs("admit_run", run_id=row["id"])
        work.change_tasks("copy_run_holds", ids=[row["id"]])


def admit_where_room(work: UnitOfWork) -> None:
    for row in work.tx.read("keys_with_room"):
        _admit_waiting(work, row["key"], row["room"])
