"""The events of a run, of all that it has called and of all their tasks, in pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.service.called import runs_below
from holdfast.store.database import Row, Transaction

# With more tasks than so many, so many events, whose they may be, are passed by: that costs about
# what looking up the events of so many tasks does.
WALKS = ((200, 2_000), (2_000, 20_000))
# And all that are left, where they are no more than so many for each task: that costs less.
EACH = 5


def read_run_events(tx: Transaction, run_id: str, after: int, count: int) -> list[Row]:
    """The first events behind one. Writers of a run take turns: no earlier one can follow.

    Whoever follows a long run asks for a page again and again, and is mostly near its end or
    among its own events: so the page is looked for there before all its tasks are gone through.
    """
    runs = [run_id, *runs_below(tx, [run_id]).get(run_id, ())]
    found: list[Row] = []
    passed = after
    for last in _walks(tx, runs, after):
        room = count - len(found)
        found += tx.read("run_events_near", runs=runs, after=passed, last=last, count=room)
        if len(found) == count or _newest(tx) <= last:
            return found
        passed = last
    room = count - len(found)
    return found + tx.read("run_events_after", runs=runs, after=passed, count=room)


def _walks(tx: Transaction, runs: Sequence[str], after: int) -> Iterator[int]:
    """Up to which events, whose they may be, a page is looked for before all tasks are."""
    for most, near in WALKS:
        if not _are_many(tx, runs, most):
            return
        yield after + near
    newest = _newest(tx)
    if _are_many(tx, runs, (newest - after) // EACH):
        yield newest


def _are_many(tx: Transaction, runs: Sequence[str], most: int) -> bool:
    return bool(tx.read("are_many_tasks", runs=runs, most=most)[0]["many"])


def _newest(tx: Transaction) -> int:
    return int(tx.read("newest_number")[0]["event"])
