"""Named leases: locks by key that end by themselves, with a token and a fence that only grows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation
from holdfast.engine.core.sync_async import operation
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.report_refusals import refuse
from holdfast.errors import ShuttingDown
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.task import NamedLease
from holdfast.model.text import clean_key, clean_name, clean_text
from holdfast.model.token import make_token, read_fence

LEASE_SUBJECT = "lease:"


@dataclass(frozen=True, kw_only=True, slots=True)
class AcquireLease(Operation):
    key: str
    owner: str
    ttl: int
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RenewLease(Operation):
    key: str
    fence: int
    ttl: int
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseLease(Operation):
    key: str
    fence: int
    keys: Keys = ()


def acquire_leases(work: UnitOfWork, operations: Sequence[AcquireLease]) -> list[NamedLease | None]:
    """Acquire the leases in the order of their keys, in whatever order they came."""
    places = sorted(range(len(operations)), key=lambda place: operations[place].key)
    replies = {place: acquire_lease(work, operations[place]) for place in places}
    return [replies[place] for place in range(len(operations))]


def acquire_lease(work: UnitOfWork, operation: AcquireLease) -> NamedLease | None:
    rows = work.tx.write(
        "acquire_lease", key=operation.key, owner=operation.owner, ttl=operation.ttl
    )
    if not rows:
        # After the clock was set back, the held lease would otherwise last longer by as much.
        work.tx.write("shorten_lease", key=operation.key)
        return None
    row = rows[0]
    token = make_token(work.secret, LEASE_SUBJECT + operation.key, row["fence"])
    return NamedLease(
        key=row["key"],
        owner=row["owner"],
        fence=row["fence"],
        token=token,
        expires_at=to_datetime(row["expires_at"]),
    )


def renew_lease(work: UnitOfWork, operation: RenewLease) -> TransitionResult:
    rows = work.tx.write("renew_lease", key=operation.key, fence=operation.fence, ttl=operation.ttl)
    return TransitionResult(ok=True) if rows else refuse(Refusal.STALE_TOKEN, None)


def release_lease(work: UnitOfWork, operation: ReleaseLease) -> TransitionResult:
    rows = work.tx.write("release_lease", key=operation.key, fence=operation.fence)
    return TransitionResult(ok=True) if rows else refuse(Refusal.STALE_TOKEN, None)


class Leases:
    """Locks that end by themselves: pass a lease's fence on, so that a late holder is refused."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def acquire(self, key: str, owner: str, *, ttl: float) -> Future[NamedLease | None]:
        """Take a lease that nobody holds; None when somebody does."""
        return self._context.submit(
            AcquireLease(
                key=clean_key("key", key),
                owner=clean_name("owner", owner),
                ttl=positive_microseconds("ttl", ttl),
            )
        )

    @acquire.undone_by
    def _release_unawaited(self, lease: NamedLease | None) -> None:
        """Release a lease that arrived after the caller that awaited it was cancelled."""
        if lease is not None:
            # An engine that closes releases nothing: the lease runs out.
            with suppress(ShuttingDown):
                self.release.submit(lease.key, lease.token)

    @operation
    def renew(self, key: str, token: str, *, ttl: float) -> Future[TransitionResult]:
        """Keep a lease; refused once it has run out or changed hands."""
        fence = self._read_fence(key, token)
        return self._context.submit(
            RenewLease(key=key, fence=fence, ttl=positive_microseconds("ttl", ttl))
        )

    @operation
    def release(self, key: str, token: str) -> Future[TransitionResult]:
        """Release a lease; its token releases no lease of anybody else."""
        return self._context.submit(ReleaseLease(key=key, fence=self._read_fence(key, token)))

    def _read_fence(self, key: str, token: str) -> int:
        subject = LEASE_SUBJECT + clean_key("key", key)
        return read_fence(self._context.secret, subject, clean_text("token", token)) or 0
