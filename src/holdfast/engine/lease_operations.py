"""What can be asked of named leases."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation


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
