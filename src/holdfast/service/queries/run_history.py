"""Run history: pages of the events of a run, of the runs below it and of all their tasks.

Events are numbered before they commit, and a claim does not lock the run of its task. So that a
page skips no event, it is returned when every transaction that was writing during its read has
ended. Where one of them takes long, the page ends before the first missing number, which may
belong to that transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from holdfast.service.queries.child_runs import read_runs_below
from holdfast.store.database import Row, Transaction

T = TypeVar("T")
ReadPage = Callable[[Transaction], list[Row]]

# (tasks, events): a run with more than so many tasks is first searched for among so many events of
# the store, which costs about as much as looking up the events of so many tasks.
NEARBY_EVENTS = ((200, 2_000), (2_000, 20_000))
# All events that are left are searched where there are at most so many for each task of the run.
EVENTS_PER_TASK = 5
# A reader waits no longer for open transactions: one that takes longer may be idle.
PATIENCE = 0.25
POLL_INTERVAL = 0.005


class StoreReader(Protocol):
    def __call__(self, work: Callable[[Transaction], T]) -> T: ...


def read_settled_page(
    read_store: StoreReader, read: ReadPage, run_id: str, after: int
) -> list[Row]:
    """A page of a run's events after one; no later commit can put an event before its last one."""

    def look(tx: Transaction) -> tuple[list[Row], set[str] | None]:
        rows = read(tx)
        # The writers are read after the rows: a writer of a missing event is found, or has ended.
        return rows, find_writers(tx) if rows and _has_open_writers(tx) else None

    rows, writers = read_store(look)
    if writers is None:
        return rows
    last = rows[-1]["seq"]
    slow = _wait_for_writers(read_store, writers)

    def look_again(tx: Transaction) -> list[Row]:
        end = _find_first_unsure(tx, run_id, after, last) if slow else last + 1
        return [row for row in read(tx) if row["seq"] < end]

    return read_store(look_again)


def _has_open_writers(tx: Transaction) -> bool:
    """Whether an open transaction may have written what this snapshot does not see."""
    (snapshot,) = tx.read("snapshot")
    return bool(snapshot["oldest"] < snapshot["next"])


def find_writers(tx: Transaction) -> set[str]:
    return {row["writer"] for row in tx.read("event_writers")}


def _wait_for_writers(read_store: StoreReader, writers: set[str]) -> set[str]:
    """Wait until some writers have ended; returns those that have not ended in time."""
    end = time.monotonic() + PATIENCE
    while writers and time.monotonic() < end:
        sleep_between_polls()
        writers &= read_store(find_writers)
    return writers


def sleep_between_polls() -> None:
    time.sleep(POLL_INTERVAL)


def _find_first_unsure(tx: Transaction, run_id: str, after: int, last: int) -> int:
    """The first event after a missing number that may still come, or the number after the last.

    Numbers missing before the first event of the run are not of the run.
    """
    begun = [row["seq"] for row in tx.read("first_event_of", entity=run_id)]
    found = tx.read("first_behind_gap", after=max([after, *begun]), last=last)
    return int(found[0]["seq"]) if found else last + 1


def read_run_events(tx: Transaction, run_id: str, after: int, count: int) -> list[Row]:
    """The first committed events of a run after one.

    A reader that follows a long run is mostly near the end of the history or among the run's own
    events: so the page is searched for there before the events of all its tasks are looked up.
    """
    runs = [run_id, *read_runs_below(tx, [run_id]).get(run_id, ())]
    found: list[Row] = []
    passed = after
    for last in _choose_limits(tx, runs, after):
        room = count - len(found)
        found += tx.read("run_events_near", runs=runs, after=passed, last=last, count=room)
        if len(found) == count or _read_newest_number(tx) <= last:
            return found
        passed = last
    room = count - len(found)
    return found + tx.read("run_events_after", runs=runs, after=passed, count=room)


def _choose_limits(tx: Transaction, runs: Sequence[str], after: int) -> Iterator[int]:
    """The numbers up to which events of the store are searched before tasks are looked up."""
    for most, near in NEARBY_EVENTS:
        if not _has_more_tasks(tx, runs, most):
            return
        yield after + near
    newest = _read_newest_number(tx)
    if _has_more_tasks(tx, runs, (newest - after) // EVENTS_PER_TASK):
        yield newest


def _has_more_tasks(tx: Transaction, runs: Sequence[str], most: int) -> bool:
    return bool(tx.read("are_many_tasks", runs=runs, most=most)[0]["many"])


def _read_newest_number(tx: Transaction) -> int:
    return int(tx.read("newest_number")[0]["event"])
