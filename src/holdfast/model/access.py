"""What a bearer token of the server may do, and until when."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Each may do what its name says: look, steer, work on what it leased, or everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    WORKER = "worker"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """A token as the store knows it; with `agents`, a worker may serve these alone."""

    name: str
    role: Role
    agents: tuple[str, ...] | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def outside(self, agents: Sequence[str] | None) -> list[str]:
        """Those of some agents that it is not for."""
        return [] if self.agents is None else sorted({*(agents or ())} - {*self.agents})


def digest_secret(secret: str) -> str:
    """What is kept of a token: it is random and long, so that nobody finds it from this."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
