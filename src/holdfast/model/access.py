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

    def refusal(self, agents: Sequence[str] | None) -> str | None:
        """Why some agents may not be served with it; None where they may."""
        outside = [] if self.agents is None else sorted({*(agents or ())} - {*self.agents})
        if not outside:
            return None
        own = ", ".join(self.agents or ())
        return f"this token is not for the agents {', '.join(outside)}; it is for {own}"


def digest_secret(secret: str) -> str:
    """What is kept of a token: it is random and long, so that nobody finds it from this."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
