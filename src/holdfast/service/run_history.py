"""The events of a run, of all that it has called and of all their tasks, in pages."""

from __future__ import annotations

from typing import Any

from holdfast.service.called import runs_below
from holdfast.store.database import Row, Transaction

# The events of so few tasks are looked up sooner than others are passed by.
FEW = 200
# So many events, whose they may be, are passed by sooner than those of many tasks are looked up.
NEAR = 20_000


def read_run_events(tx: Transaction, run_id: str, after: int, count: int) -> list[Row]:
    """The first events behind one. Writers of a run take turns: no earlier one can follow.

    Whoever follows a long run asks for a page again and again, and is mostly near its end or
    among its own events: so the page is looked for there before all its tasks are gone through.
    """
    runs = [run_id, *runs_below(tx, [run_id]).get(run_id, ())]
    asked: dict[str, Any] = {"runs": runs, "after": after, "count": count}
    if tx.read("are_many_tasks", runs=runs, most=FEW)[0]["many"]:
        last = after + NEAR
        found = tx.read("run_events_near", last=last, **asked)
        if len(found) == count or tx.read("newest_number")[0]["event"] <= last:
            return found
    return tx.read("run_events_after", **asked)
