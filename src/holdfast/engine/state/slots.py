"""Concurrency keys: one counter row each, changed by guarded updates after every task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.engine.core.task_rows import RUN_PREFIX
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.store.database import Contended, Row

WITHDRAWN_AT_ONCE = 2_000
# Of each line, those that workers run, and those that are bare.
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

    Behind a key that sorts later, waiting could close a circle: rather begin again.
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
    """Give back what ended tasks and runs held, and let the oldest waiting runs in."""
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
    """Let those on who have waited longest for a key that has room: runs now, tasks in the end."""
    if key.startswith(RUN_PREFIX):
        admit_runs(work, key, count)
    else:
        work.may_readmit_tasks = True


def readmit_tasks(work: UnitOfWork) -> bool:
    """Let on whoever is parked though its key has room; whether anybody waits for a key at all.

    The first of each line, because there may be no worker for the one that has waited longest of
    all; and once in a group, because whoever is let in and not claimed is parked again by its end.
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
        # There may be more of them now than there is room.
        work.keys_to_withdraw.add(key)


def withdraw_tasks(work: UnitOfWork) -> int:
    """Take out of the line who waits for a key that this group filled or added to.

    So no claim walks past them; the answer is how many, at most `WITHDRAWN_AT_ONCE`.
    """
    if not work.keys_to_withdraw:
        return 0
    keys = sorted(work.keys_to_withdraw)
    return len(work.tx.write("park_tasks", keys=keys, count=WITHDRAWN_AT_ONCE))


def admit_runs(work: UnitOfWork, key: str, count: int) -> None:
    """Lift hold slot from the oldest runs that wait for a key, as far as there is room."""
    lock_slots(work, [key])
    for row in work.tx.read("waiting_runs", key=key, count=count):
        if not work.tx.write("take_slots", rows=[(key, 1)]):
            return
        work.change_runs("admit_run", run_id=row["id"])
        work.change_tasks("copy_run_holds", ids=[row["id"]])


def admit_where_room(work: UnitOfWork) -> None:
    for row in work.tx.read("keys_with_room"):
        _admit_waiting(work, row["key"], row["room"])
