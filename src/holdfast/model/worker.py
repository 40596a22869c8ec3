"""A worker as the store knows it: what it offers, and since when it has not been heard of."""

from __future__ import annotations

from dataclasses import dataclass

DRAIN = "drain"
EVICT = "evict"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveWorker:
    """A worker that said so lately; `told` is `drain` or `evict` once somebody wants it to go.

    `process` is which process it is, `pausing` why it claims nothing just now.
    """

    name: str
    agents: tuple[str, ...]
    tags: tuple[str, ...]
    concurrency: int
    told: str | None
    process: str | None
    pausing: str | None
    started_at: int
    seen_at: int
    expires_at: int
