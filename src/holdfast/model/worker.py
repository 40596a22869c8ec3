"""Workers as the store knows them; apart from `task`, because a worker is no part of a task."""

from __future__ import annotations

from dataclasses import dataclass

DRAIN = "drain"
EVICT = "evict"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveWorker:
    """A worker that was seen lately; `told` is `drain` or `evict` once it was asked to go.

    `process` identifies its process; `pausing` is the reason why it claims nothing at the moment.
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
