"""Where the tasks of a run stand: `plan`, or `build.2.implement` in a loop."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.engine.looking import place_of_item
from holdfast.store.database import Row, Transaction

_PLACE = re.compile("[0-9]{1,9}")
# So many of those that one address leads to are named.
NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Sought:
    """What an address leads to, or the last it passed on the way to nothing and what came then."""

    found: Row | None
    above: Row | None = None
    rest: tuple[str, ...] = ()
    # That it leads to more than one.
    several: str | None = None


def seek(tx: Transaction, run_id: str, address: str) -> Sought:
    """Follow an address; items count from 1: `build.2` is the item itself, `build` the loop."""
    first, *rest = address.split(".")
    found = tx.read("task_at_top", run_id=run_id, step=first)
    above = None
    while found and rest:
        above = found[0]
        found = _below(tx, above, rest[0])
        if len(found) > 1:
            return Sought(found=None, above=above, several=_several(address, found))
        rest = rest[1:] if found else rest
    return Sought(found=found[0] if found else None, above=above, rest=tuple(rest))


def _below(tx: Transaction, row: Row, part: str) -> list[Row]:
    if row["calls"] is not None:
        return tx.read("task_at_top", run_id=called_run(tx, row) or "", step=part)
    if row["item"] is None and is_number(part):
        asked = {"parent_id": row["id"], "place": place_of_item(part)}
        return tx.read("item_of", **asked) or tx.read("moved_item_of", **asked)
    return tx.read("task_of_item", parent_id=row["id"], step=part)


def _several(address: str, found: list[Row]) -> str:
    """What a step has made of one function, as `map` does, has one address and several ids."""
    told = ", ".join(f"{row['id']} ({row['status']})" for row in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{address} leads to {len(found)} tasks; give the id of one: {told}{more}"


def called_run(tx: Transaction, row: Row) -> str | None:
    """The run that a step has called, also where it does not wait for it now."""
    if row["waits_for"] is not None:
        return str(row["waits_for"])
    known = tx.read("child_runs", ids=[row["id"]])
    return str(known[0]["id"]) if known else None


def is_number(part: str) -> bool:
    """Whether a part of an address is the number of an item."""
    return _PLACE.fullmatch(part) is not None
