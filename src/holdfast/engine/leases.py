"""Named leases for anything that is not a task: one holder, a fence that grows for ever."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.answers import refuse
from holdfast.engine.group import Group
from holdfast.engine.lease_operations import AcquireLease, ReleaseLease, RenewLease
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.task import NamedLease
from holdfast.model.token import make_token

LEASE_SUBJECT = "lease:"


def acquire_all(group: Group, operations: Sequence[AcquireLease]) -> list[NamedLease | None]:
    """New keys are inserted in their own order, whatever order they were asked for in."""
    places = sorted(range(len(operations)), key=lambda place: operations[place].key)
    given = {place: acquire(group, operations[place]) for place in places}
    return [given[place] for place in range(len(operations))]


def acquire(group: Group, operation: AcquireLease) -> NamedLease | None:
    rows = group.tx.write(
        "acquire_lease", key=operation.key, owner=operation.owner, ttl=operation.ttl
    )
    if not rows:
        # Where the clock was set back under it, it would else last for as long as that.
        group.tx.write("shorten_lease", key=operation.key)
        return None
    row = rows[0]
    token = make_token(group.secret, LEASE_SUBJECT + operation.key, row["fence"])
    return NamedLease(
        key=row["key"],
        owner=row["owner"],
        fence=row["fence"],
        token=token,
        expires_at=row["expires_at"],
    )


def renew(group: Group, operation: RenewLease) -> TransitionResult:
    rows = group.tx.write(
        "renew_lease", key=operation.key, fence=operation.fence, ttl=operation.ttl
    )
    return TransitionResult(ok=True) if rows else refuse(Refusal.STALE_TOKEN, None)


def release(group: Group, operation: ReleaseLease) -> TransitionResult:
    rows = group.tx.write("release_lease", key=operation.key, fence=operation.fence)
    return TransitionResult(ok=True) if rows else refuse(Refusal.STALE_TOKEN, None)
