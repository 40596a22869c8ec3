"""A task as it is asked for, as it stands, and as a worker receives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.model.duration import Moment
from holdfast.model.graph import Concurrency
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import TERMINAL, Hold, Kind, PlanningPhase, Status
from holdfast.model.work import Work


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTask:
    """What a caller asks for; the writer gives it its id and checks every field.

    `scheduled_for` is a datetime with a time zone, a number of microseconds since 1970, or a
    duration from now by the database's clock: "2s" or a timedelta.
    """

    title: str
    step: str | None = None
    agent: str = "default"
    payload: Any = None
    needs: tuple[str, ...] = ()
    parent: str | None = None
    scheduled_for: Moment | None = None
    priority: int = 0
    position: int = 0
    tags: tuple[str, ...] = ()
    key: str | None = None
    retry: RetryPolicy = RetryPolicy()  # noqa: RUF009 - frozen
    timeout: float | None = None
    concurrency: Concurrency | None = None
    enqueue: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    owner: str
    expires_at: int


@dataclass(frozen=True, kw_only=True)
class Task:
    id: str
    kind: Kind
    run_id: str | None
    parent_id: str | None
    step: str | None
    title: str
    agent: str
    status: Status
    planning_phase: PlanningPhase
    blocked: bool
    holds: Hold
    run_holds: Hold
    due: bool
    scheduled_for: int | None
    run_now: bool
    skipped: bool
    priority: int
    position: int
    tags: tuple[str, ...]
    key: str | None
    concurrency_key: str | None
    attempt: int
    failures: int
    lost: int
    retry: RetryPolicy
    timeout: float | None
    generation: int
    epoch: int
    payload: Any
    output: Any
    error: Any
    usage: Any
    progress: Any
    lease: Lease | None
    version: int
    created_at: int
    started_at: int | None
    finished_at: int | None
    waits_for: str | None = None
    parent_epoch: int | None = None
    superseded: bool = False
    item: int | None = None
    total: int | None = None
    round: int = 0
    max_rounds: int = 1
    feedback: Any = None
    question: Any = None

    @property
    def state(self) -> str:
        """What a person sees; derived, never stored."""
        if self.status is not Status.QUEUED:
            return self.status.value
        if self.run_holds & Hold.FAILING:
            return "stalled"
        if self.blocked:
            return "blocked"
        if self.holds or self.run_holds:
            return "held"
        if not self.due:
            return "scheduled" if self.waits_for is None else "waiting"
        return "ready"

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One lease of one task, with the token that every write under it must carry."""

    task: Task
    attempt: int
    token: str = field(repr=False)
    expires_at: int
    workflow: str | None = None
    workflow_version: str | None = None
    input: Any = None
    item: Any = None
    needs: dict[str, Any]
    around: Any = None
    work: Work | None = None

    @property
    def feedback(self) -> Any:  # noqa: ANN401 - JSON is any value
        """What was said of the work so far: of the task, or of the loop or item it is part of."""
        return self.around if self.task.feedback is None else self.task.feedback


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewal:
    task_id: str
    token: str = field(repr=False)
    progress: Any = None
    usage: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The kept record of one lease: who had it and how it ended.

    `stopped_at` is when nothing of its command ran any more, where that had to be ended: `stopped`
    counts the processes, `left` those that could not be ended.
    """

    task_id: str
    number: int
    owner: str
    claimed_at: int
    ended_at: int | None = None
    outcome: str | None = None
    digest: str | None = None
    error: Any = None
    usage: Any = None
    stopped_at: int | None = None
    stopped: int = 0
    left: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedLease:
    key: str
    owner: str
    fence: int
    token: str = field(repr=False)
    expires_at: int
