"""Statuses: the states of tasks and runs, holds, and the tables of allowed transitions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag, StrEnum
from functools import lru_cache


class Status(StrEnum):
    """The status of a task."""

    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunStatus(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskKind(StrEnum):
    WORK = "work"
    GROUP = "group"
    APPROVAL = "approval"


class PlanningPhase(StrEnum):
    NONE = "none"
    ACTIVE = "active"
    FINALIZED = "finalized"


class Hold(IntFlag):
    """The reasons that stop a task or run without changing its status; stored as one integer."""

    PAUSED = 1
    APPROVAL = 2
    QUESTION = 4
    BUDGET = 8
    LIMIT = 16
    SLOT = 32
    FAILING = 64
    VERSION = 128
    SCHEDULED = 256

    @property
    def names(self) -> tuple[str, ...]:
        return _names(self)

    def __str__(self) -> str:
        return ", ".join(self.names) or "none"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


@lru_cache(maxsize=256)
def _names(holds: Hold) -> tuple[str, ...]:
    return tuple(str(hold.name).lower() for hold in Hold if hold in holds)


TERMINAL = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED})
RUN_TERMINAL = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """One allowed transition; `new_generation` says that it starts a new generation."""

    source: str
    target: str
    by: tuple[str, ...]
    new_generation: bool = False


def _move(source: str, target: str, *by: str, new_generation: bool = False) -> Transition:
    return Transition(source=source, target=target, by=by, new_generation=new_generation)


TASK_TRANSITIONS: tuple[Transition, ...] = (
    _move("idle", "queued", "enqueue", "run-now"),
    _move("idle", "running", "claim by id"),
    _move("idle", "cancelled", "cancel"),
    _move("idle", "done", "advance (group)", "approve"),
    _move("idle", "failed", "advance (group)", "reject"),
    _move("queued", "running", "claim"),
    _move("queued", "cancelled", "cancel"),
    _move("queued", "idle", "reset"),
    _move("queued", "done", "advance (group, skip)", "approve"),
    _move("queued", "failed", "advance (group, unrenderable)", "reject"),
    _move("running", "done", "complete"),
    _move("running", "failed", "fail", "lost"),
    _move("running", "cancelled", "cancel"),
    _move(
        "running", "queued", "retry", "lost", "release", "ask", "escalate", "rejected", "superseded"
    ),
    _move("done", "idle", "reset", new_generation=True),
    _move("done", "queued", "re-open", new_generation=True),
    _move("failed", "idle", "reset", new_generation=True),
    _move("failed", "queued", "retry", "re-open", new_generation=True),
    _move("cancelled", "idle", "reset", new_generation=True),
    _move("cancelled", "queued", "retry", "re-open", new_generation=True),
)

RUN_TRANSITIONS: tuple[Transition, ...] = (
    _move("running", "completed", "advance"),
    _move("running", "failed", "advance", "deadline"),
    _move("running", "cancelled", "cancel"),
    _move("completed", "running", "re-open", "retry from", "reset", new_generation=True),
    _move("failed", "running", "retry", "re-open", "retry from", "reset", new_generation=True),
    _move("cancelled", "running", "retry", "re-open", "retry from", "reset", new_generation=True),
)


def is_allowed(table: tuple[Transition, ...], source: str, target: str) -> bool:
    return any(move.source == source and move.target == target for move in table)
