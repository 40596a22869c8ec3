"""What is asked about workers: that one is there, what one is told, and what one has stopped."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation, Report


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOperation(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (f"worker:{self.name}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisterWorker(WorkerOperation):
    agents: str
    tags: str
    concurrency: int
    ttl: int
    process: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnnounceWorker(WorkerOperation):
    started_at: int
    ttl: int
    pausing: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TellWorker(WorkerOperation):
    told: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetWorker(WorkerOperation):
    started_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteStop(Report):
    """Nothing of an attempt runs any more, but for `left` processes that could not be ended."""

    ended: int
    left: int
