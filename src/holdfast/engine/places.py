"""Where the tasks of a run stand: `plan`, or `build.2.implement` in a loop."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.engine.looking import name_tasks, place_of_item
from holdfast.engine.records import read_task
from holdfast.store.database import Row, Transaction

_PLACE = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sought:
    """What an address leads to, or the last it passed on the way to nothing."""

    found: Row | None
    above: Row | None = None


def seek(tx: Transaction, run_id: str, address: str) -> Sought:
    """Follow an address; items count from 1: `build.2` is the item itself, `build` the loop."""
    first, *parts = address.split(".")
    found = tx.read("task_at_top", run_id=run_id, step=first)
    above = None
    for part in parts:
        if found:
            above = found[0]
            found = _below(tx, above, part)
    return Sought(found=found[0] if found else None, above=above)


def _below(tx: Transaction, row: Row, part: str) -> list[Row]:
    if row["calls"] is not None:
        run_id = row["waits_for"]
        if run_id is None:
            known = tx.read("child_runs", ids=[row["id"]])
            run_id = known[0]["id"] if known else ""
        return tx.read("task_at_top", run_id=run_id, step=part)
    if row["item"] is None and _PLACE.fullmatch(part):
        return tx.read("item_of", parent_id=row["id"], place=place_of_item(part))
    return tx.read("task_of_item", parent_id=row["id"], step=part)


def tell_steps(tx: Transaction, run_id: str, above: Row | None) -> str:
    """Which steps there are, where an address goes wrong."""
    tasks = [read_task(row) for row in tx.read("run_tasks", run_id=run_id)]
    parent = None if above is None else above["id"]
    there = [task for task in tasks if task.parent_id == parent and not task.superseded]
    steps = ", ".join(str(task.step) for task in there)
    # The items of a loop have its name.
    if above is not None and above["step"] in {task.step for task in there}:
        return f"{above['step']} has {len(there)} items so far, counted from 1"
    return f"the steps there are {steps}" if steps else "there is nothing below a step"


def tell_unknown(tx: Transaction, run_id: str, address: str, above: Row | None) -> str:
    """Why nothing can begin again at an address; of a step in a loop, which item could be meant."""
    inner = tx.read("task_in_run", run_id=run_id, step=address)
    if not inner:
        return f"{run_id} has no step {address!r}; {tell_steps(tx, run_id, above)}"
    (name,) = name_tasks(tx, [inner[0]["id"]]).values()
    meant = f'hf.runs.retry("{run_id}", step="{name}")'
    return f"{address!r} stands in a loop, once for each item; say which one is meant: {meant}"
