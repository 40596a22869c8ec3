"""The events of a run, of all that it has called and of all their tasks, in pages that skip none.

Events are numbered before they commit, and who claims a task takes no turns with other writers of
its run. So a page is told when all who were writing while it was read have ended; where one of them
takes long, it ends before the first number that is missing, which may be theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from holdfast.service.queries.child_runs import read_runs_below
from holdfast.store.database import Row, Transaction

T = TypeVar("T")
ReadPage = Callable[[Transaction], list[Row]]

# With more tasks than so many, so many events, whose they may be, are passed by: that costs about
# what looking up the events of so many tasks does.
NEARBY_EVENTS = ((200, 2_000), (2_000, 20_000))
# And all that are left, where they are no more than so many for each task: that costs less.
EVENTS_PER_TASK = 5
# Few transactions take so long, and those that do may be idle: a reader does not wait for them.
PATIENCE = 0.25
POLL_INTERVAL = 0.005


class StoreReader(Protocol):
    def __call__(self, work: Callable[[Transaction], T]) -> T: ...


def read_settled_page(
    read_store: StoreReader, read: ReadPage, run_id: str, after: int
) -> list[Row]:
    """A page of a run's events behind one; no other before the last of them can follow."""

    def look(tx: Transaction) -> tuple[list[Row], set[str] | None]:
        rows = read(tx)
        # Behind the rows: whoever has written by then what they lack is found, or has ended.
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
    """Whether anybody may have written what this look does not see."""
    (snapshot,) = tx.read("snapshot")
    return bool(snapshot["oldest"] < snapshot["next"])


def find_writers(tx: Transaction) -> set[str]:
    return {row["writer"] for row in tx.read("event_writers")}


def _wait_for_writers(read_store: StoreReader, writers: set[str]) -> set[str]:
    """Wait until some writers have ended; tells who has not within patience."""
    end = time.monotonic() + PATIENCE
    while writers and time.monotonic() < end:
        sleep_between_polls()
        writers &= read_store(find_writers)
    return writers


def sleep_between_polls() -> None:
    time.sleep(POLL_INTERVAL)


def _find_first_unsure(tx: Transaction, run_id: str, after: int, last: int) -> int:
    """The first event with a number missing before it, which may still come; or behind the last.

    A run begins with its own first event: what is missing before that is not of it.
    """
    begun = [row["seq"] for row in tx.read("first_event_of", entity=run_id)]
    found = tx.read("first_behind_gap", after=max([after, *begun]), last=last)
    return int(found[0]["seq"]) if found else last + 1


def read_run_events(tx: Transaction, run_id: str, after: int, count: int) -> list[Row]:
    """The first events behind one, as far as they are committed.

    Whoever follows a long run asks for a page again and again, and is mostly near its end or
    among its own events: so the page is looked for there before all its tasks are gone through.
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
    """Up to which events, whose they may be, a page is looked for before all tasks are."""
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
