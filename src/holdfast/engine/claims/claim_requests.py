"""Claim requests: the same request again gets the same tasks, as long as they are still held."""

from __future__ import annotations

import json

from holdfast.engine.core.operation import Claim, ClaimById
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.store.database import Contended, Row

# How long a claim request is kept, in microseconds: nobody repeats one for longer.
KEPT_REQUESTS = 86_400_000_000


def recall_claim_request(work: UnitOfWork, claim: Claim | ClaimById) -> list[Row] | None:
    """The tasks that a request was given and that are still held, with renewed leases.

    None if the request is new.
    """
    if claim.request is None:
        return None
    if claim.request in work.claims_by_request:
        return []
    known = work.tx.read("pulls_of", requests=[claim.request])
    if not known:
        return None
    taken = json.loads(known[0]["taken"])
    renewed = work.tx.write("renew_pulled", rows=taken, lease=claim.lease)
    held = work.tx.read("held_again", rows=taken)
    if len(renewed) < len(held):
        # Waiting for the lock here could be a deadlock: claims come after all that a group locks.
        raise Contended("another process has to do with what a request was given")
    # With the columns of a claim.
    return [{**row, "name": row["title"], "needy": True} for row in held]


def note_claim_request(work: UnitOfWork, request: str | None, rows: list[Row]) -> None:
    """Note what a request was given; a request that got nothing may claim again."""
    if request is not None and rows:
        work.claims_by_request[request] = json.dumps(
            [(row["entity"], row["attempt"]) for row in rows]
        )


def keep_claim_requests(work: UnitOfWork) -> None:
    """Write the noted claim requests, and forget those that are older than `KEPT_REQUESTS`."""
    if not work.claims_by_request:
        return
    work.tx.run("forget_pulls", kept=KEPT_REQUESTS)
    kept = work.tx.write("keep_pulls", rows=sorted(work.claims_by_request.items()))
    if len(kept) < len(work.claims_by_request):
        raise Contended("another process has served the same request")
