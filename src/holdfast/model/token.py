"""Tokens: the secret of one attempt, and the access tokens of a server.

Each process that knows the secret of the store can make the token of an attempt again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_TOKEN = re.compile(r"([1-9][0-9]{0,9})\.([0-9a-f]{32})\Z")
# Finds the tokens of attempts inside a text.
TOKEN_PATTERN = re.compile(r"\b[1-9][0-9]{0,9}\.[0-9a-f]{32}\b")


def make_token(secret: bytes, task_id: str, attempt: int) -> str:
    return f"{attempt}.{_mac(secret, task_id, attempt)}"


def read_fence(secret: bytes, task_id: str, token: str) -> int | None:
    """The attempt of a token, or None when it is no token of this task."""
    match = _TOKEN.match(token)
    if match is None:
        return None
    attempt = int(match[1])
    if not hmac.compare_digest(match[2], _mac(secret, task_id, attempt)):
        return None
    return attempt


@lru_cache(maxsize=5_000)
def _mac(secret: bytes, task_id: str, attempt: int) -> str:
    mac = _keyed_mac(secret).copy()
    mac.update(f"{task_id}.{attempt}".encode())
    return mac.hexdigest()[:32]


@lru_cache(maxsize=10)
def _keyed_mac(secret: bytes) -> hmac.HMAC:
    """The keyed part of every token of a store: half of the work, done once."""
    return hmac.new(secret, digestmod="sha256")


class Role(StrEnum):
    """A viewer looks, an operator steers, a worker works on what it leased, an admin may do all."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    WORKER = "worker"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessToken:
    """An access token as the store knows it; with `agents`, its workers may serve these alone."""

    name: str
    role: Role
    agents: tuple[str, ...] | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def refusal(self, agents: Sequence[str] | None) -> str | None:
        """The reason why these agents may not be served with this token, or None."""
        outside = [] if self.agents is None else sorted({*(agents or ())} - {*self.agents})
        if not outside:
            return None
        own = ", ".join(self.agents or ())
        return f"this token is not for the agents {', '.join(outside)}; it is for {own}"


def digest_secret(secret: str) -> str:
    """The digest that the store keeps of a token; tokens are random and too long to be guessed."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
