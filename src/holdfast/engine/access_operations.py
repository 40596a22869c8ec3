"""What is asked about tokens of the server: that one is good, or no longer."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessOperation(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (f"access:{self.name}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantAccess(AccessOperation):
    digest: str
    role: str
    agents: str | None
    ttl: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RevokeAccess(AccessOperation):
    pass
