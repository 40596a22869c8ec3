"""The secret of one attempt: any server that knows the store's secret can make it again."""

from __future__ import annotations

import hmac
import re
from functools import lru_cache

_TOKEN = re.compile(r"([1-9][0-9]{0,9})\.([0-9a-f]{32})\Z")
# Wherever they stand in a text.
TOKENS = re.compile(r"\b[1-9][0-9]{0,9}\.[0-9a-f]{32}\b")


def make_token(secret: bytes, task_id: str, attempt: int) -> str:
    return f"{attempt}.{_mac(secret, task_id, attempt)}"


def read_fence(secret: bytes, task_id: str, token: str) -> int | None:
    """The attempt a token speaks for, or None when it is not this task's token at all."""
    match = _TOKEN.match(token)
    if match is None:
        return None
    attempt = int(match[1])
    if not hmac.compare_digest(match[2], _mac(secret, task_id, attempt)):
        return None
    return attempt


@lru_cache(maxsize=5_000)
def _mac(secret: bytes, task_id: str, attempt: int) -> str:
    mac = _keyed(secret).copy()
    mac.update(f"{task_id}.{attempt}".encode())
    return mac.hexdigest()[:32]


@lru_cache(maxsize=10)
def _keyed(secret: bytes) -> hmac.HMAC:
    """Half the work of every token of a store, done once."""
    return hmac.new(secret, digestmod="sha256")
