"""What was claimed for a request, kept with the claim: the same request again gets the same."""

from __future__ import annotations

import json

from holdfast.engine.group import Group
from holdfast.engine.operations import Claim, ClaimById
from holdfast.store.database import Contended, Row

# Nobody repeats a request for longer than this.
KEPT = 86_400_000_000


def recall(group: Group, claim: Claim | ClaimById) -> list[Row] | None:
    """The tasks that a request was given, each with a whole lease, as far as they are held still.

    None when the request is new.
    """
    if claim.request is None:
        return None
    if claim.request in group.pulls:
        return []
    known = group.tx.read("pulls_of", requests=[claim.request])
    if not known:
        return None
    taken = json.loads(known[0]["taken"])
    renewed = group.tx.write("renew_pulled", rows=taken, lease=claim.lease)
    held = group.tx.read("held_again", rows=taken)
    if len(renewed) < len(held):
        # Waiting for it here could close a circle: claims come after all that a group locks.
        raise Contended("another process has to do with what a request was given")
    # As a claim gives them.
    return [{**row, "name": row["title"], "needy": True} for row in held]


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
