"""Named leases: hold a key for a while, with a token and a fence to pass on."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress

from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation
from holdfast.engine.lease_operations import AcquireLease, ReleaseLease, RenewLease
from holdfast.engine.leases import LEASE_SUBJECT
from holdfast.errors import ShuttingDown
from holdfast.model.result import TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.task import NamedLease
from holdfast.model.text import clean_key, clean_name, clean_text
from holdfast.model.token import read_fence


class Leases:
    """Locks that end by themselves: pass a lease's fence on, so that who is late is refused."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def acquire(self, key: str, owner: str, *, ttl: float) -> Future[NamedLease | None]:
        """Take a lease that nobody holds; None when somebody does."""
        return self._desk.submit(
            AcquireLease(
                key=clean_key("key", key),
                owner=clean_name("owner", owner),
                ttl=positive_microseconds("ttl", ttl),
            )
        )

    @acquire.undone_by
    def _give_back(self, lease: NamedLease | None) -> None:
        """Free what came after the one who awaited it was cancelled."""
        if lease is not None:
            # An engine that closes takes nothing back: the lease runs out.
            with suppress(ShuttingDown):
                self.release.submit(lease.key, lease.token)

    @operation
    def renew(self, key: str, token: str, *, ttl: float) -> Future[TransitionResult]:
        """Keep a lease; refused once it has run out or changed hands."""
        fence = self._fence(key, token)
        return self._desk.submit(
            RenewLease(key=key, fence=fence, ttl=positive_microseconds("ttl", ttl))
        )

    @operation
    def release(self, key: str, token: str) -> Future[TransitionResult]:
        """Give a lease back; nobody else's can be freed with its token."""
        return self._desk.submit(ReleaseLease(key=key, fence=self._fence(key, token)))

    def _fence(self, key: str, token: str) -> int:
        subject = LEASE_SUBJECT + clean_key("key", key)
        return read_fence(self._desk.secret, subject, clean_text("token", token)) or 0
