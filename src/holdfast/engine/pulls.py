"""What was claimed for a request, kept with the claim: the same request again gets the same."""

from __future__ import annotations

import json

from holdfast.engine.group import Group
from holdfast.store.database import Row
from holdfast.store.patience import Contended

# Nobody repeats a request for longer than this.
KEPT = 86_400_000_000


def recall(group: Group, request: str | None) -> list[Row] | None:
    """The tasks that a request was given, as far as they are held still; None when it is new."""
    if request is None:
        return None
    if request in group.pulls:
        return []
    known = group.tx.read("pulls_of", requests=[request])
    if not known:
        return None
    return [_held(row) for row in group.tx.read("held_again", rows=json.loads(known[0]["taken"]))]


def note(group: Group, request: str | None, rows: list[Row]) -> None:
    """Have it remembered what a request was given; one that got nothing may be made again."""
    if request is not None and rows:
        group.pulls[request] = json.dumps([(row["entity"], row["attempt"]) for row in rows])


def keep(group: Group) -> None:
    if not group.pulls:
        return
    group.tx.run("forget_pulls", kept=KEPT)
    kept = group.tx.write("keep_pulls", rows=sorted(group.pulls.items()))
    if len(kept) < len(group.pulls):
        raise Contended("another process has served the same request")


def _held(row: Row) -> Row:
    """As a claim gives it."""
    return {**row, "carried": (tuple(row), tuple(row.values()))}
