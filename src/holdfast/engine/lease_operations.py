"""What can be asked of named leases."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Sized


@dataclass(frozen=True, kw_only=True, slots=True)
class AcquireLease(Sized):
    key: str
    owner: str
    ttl: int
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RenewLease(Sized):
    key: str
    fence: int
    ttl: int
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseLease(Sized):
    key: str
    fence: int
    keys: Keys = ()
