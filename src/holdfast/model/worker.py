"""Workers as the store knows them; apart from `task`, because a worker is no part of a task."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

DRAIN = "drain"
EVICT = "evict"
# Among the agents that a worker serves: whatever agent a task is for.
EVERY_AGENT = "*"


def serves_agent(agents: Collection[str], agent: str) -> bool:
    """Whether a worker with these agents serves one."""
    return agent in agents or EVERY_AGENT in agents


class Overrun(NamedTuple):
    """An attempt that is over while its function still runs, and the time at which that began.

    Until the function returns it keeps its slot of the worker.
    """

    task_id: str
    attempt: int
    began_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveWorker:
    """A worker that was seen lately; `told` is `drain` or `evict` once it was asked to go.

    `process` identifies its process; `pausing` is the reason why it claims nothing at the moment.
    It does tasks that name neither function nor program for the `equipped` agents alone.
    """

    name: str
    agents: tuple[str, ...]
    tags: tuple[str, ...]
    equipped: tuple[str, ...]
    concurrency: int
    told: str | None
    process: str | None
    pausing: str | None
    started_at: datetime
    seen_at: datetime
    expires_at: datetime
    overruns: tuple[Overrun, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Occupant:
    """An attempt that runs in a worker, or an overrun; `name` is its task's address or title."""

    task_id: str
    run_id: str | None
    name: str
    attempt: int
    began_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerLoad:
    """What a live worker runs: `claimed` counts all its attempts, `running` are the oldest."""

    worker: LiveWorker
    claimed: int
    running: tuple[Occupant, ...]
    overruns: tuple[Occupant, ...]

    @property
    def used(self) -> int:
        """How many slots are used; what was claimed ahead has none yet."""
        return min(self.worker.concurrency, self.claimed + len(self.overruns))

    @property
    def free(self) -> int:
        return self.worker.concurrency - self.used
