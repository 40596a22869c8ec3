"""Tasks: a task as a caller asks for it, as the store knows it, and as a worker receives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import TERMINAL, Hold, PlanningPhase, Status, TaskKind

if TYPE_CHECKING:
    # The parts of a new task and of an assignment are slow to load, and reading a task needs none.
    from holdfast.model.trace import Trace
    from holdfast.model.units import Moment
    from holdfast.model.workflow.declarations import StepWork
    from holdfast.model.workflow.line import NewHead
    from holdfast.model.workflow.step import Concurrency

VERIFYING = "verifying"


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """What a caller asks for; the writer gives it its id and checks every field.

    `scheduled_for` is a datetime with a time zone, the same as text in ISO 8601, a number of
    microseconds since 1970, or a duration from now by the database's clock: "2s" or a timedelta.
    With `plan` the task is being planned from the start: its children do the work, and are created
    with it as their `parent`. A `part` must have a plan as its parent. With a `workflow` the task
    is a run of it, and its payload is the input. Without a `position` the task is the last of its
    plan, or at 0 outside of a plan; of two tasks at one position the older comes first. The events
    of the task belong to the `trace`, where one is given. People find it again by its `labels`.
    """

    title: str
    step: str | None = None
    agent: str = "default"
    payload: Any = None
    needs: tuple[str, ...] = ()
    parent: str | None = None
    scheduled_for: Moment | None = None
    priority: int = 0
    position: int | None = None
    tags: tuple[str, ...] = ()
    key: str | None = None
    retry: RetryPolicy = RetryPolicy()  # noqa: RUF009 - frozen
    timeout: float | None = None
    concurrency: Concurrency | None = None
    enqueue: bool = True
    plan: bool = False
    part: bool = False
    workflow: str | None = None
    trace: Trace | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Lease(ReadableRecord):
    """The worker that has a task, and the time at which its lease ends unless it is renewed."""

    owner: str
    expires_at: datetime


@dataclass(frozen=True, kw_only=True, repr=False)
class Task(ReadableRecord):
    """A task as the store knows it; `state` is for people."""

    id: str
    kind: TaskKind
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
    scheduled_for: datetime | None
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
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    waits_for: str | None = None
    parent_epoch: int | None = None
    superseded: bool = False
    item: int | None = None
    total: int | None = None
    round: int = 0
    max_rounds: int = 1
    feedback: Any = None
    question: Any = None
    # The workflow that the task calls; while the task waits for the run, `waits_for` is its id.
    calls: str | None = None
    # The agent that failed for good, after which the task was handed to its present agent.
    escalated_from: str | None = None
    # The time at which the hold `limit` ends: of the task itself, or of its agent.
    held_until: datetime | None = None
    # Counts of a group that is not done.
    children: int | None = None
    children_done: int | None = None
    # Whether the verifier of the task runs, or comes next.
    verifying: bool = False
    # Of a task without a run: whether a task that it needs has failed or was cancelled.
    need_lost: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """The state that people see; derived, never stored."""
        phase = self.planning_phase if self.status is Status.IDLE else PlanningPhase.NONE
        if self.status is not Status.QUEUED and phase is not PlanningPhase.FINALIZED:
            return self._state_of_status if phase is PlanningPhase.NONE else "planning"
        if self.run_holds & Hold.FAILING or self.need_lost:
            return "stalled"
        if self.blocked:
            return "blocked"
        if self.holds or self.run_holds:
            waits_for_time = not self.holds and self.run_holds == Hold.SCHEDULED
            return "scheduled" if waits_for_time else "held"
        if not self.due:
            return "scheduled" if self.waits_for is None else "waiting"
        return self._state_of_group if self.kind is TaskKind.GROUP else "ready"

    @property
    def _state_of_status(self) -> str:
        judged = self.verifying and self.status is Status.DONE
        return VERIFYING if judged else self.status.value

    @property
    def _state_of_group(self) -> str:
        if self.verifying:
            return VERIFYING
        known = self.children_done is not None
        return f"in progress {self.children_done}/{self.children}" if known else "in progress"

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL


class AssignmentSource(Protocol):
    """The port through which an assignment reads its fields when they are first used."""

    def read_field(self, row: Mapping[str, Any], name: str) -> Any: ...  # noqa: ANN401 - JSON


_READ_ON_DEMAND = frozenset(
    {"token", "task", "name", "epoch", "payload", "input", "item", "needs", "feedback"}
    | {"own_feedback"}
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Assignment(ReadableRecord):
    """One lease of one task, with the token that every write under it must carry.

    `item` is the value of the item of the nearest loop; `feedback` is about the work so far: about
    the task, or about the loop or item that it is part of. A worker in the program itself reads
    `task` at its first use, in its state by then; other workers get the task as it was claimed.
    """

    task_id: str
    attempt: int
    expires_at: datetime
    run_id: str | None = None
    step: str | None = None
    item_number: int | None = None
    timeout: float | None = None
    workflow: str | None = None
    workflow_version: str | None = None
    # Whether the task carries out a step of a workflow, and not a call of a task function.
    is_step: bool = False
    # The dollars that the attempt may use, where the budget of its run limits them.
    usd_per_attempt: float | None = None
    # Fields after the token are read at their first use: most steps use few of them.
    token: str = field(repr=False)
    # The repr leaves the task out, because reading it may be a query.
    task: Task = field(repr=False)
    # The step of the task, or its title where it has no step.
    name: str
    epoch: int
    payload: Any
    input: Any
    item: Any
    needs: dict[str, Any]
    feedback: Any
    # Feedback about the task itself.
    own_feedback: Any
    work: StepWork | None = None
    source: AssignmentSource = field(repr=False, compare=False)
    row: Mapping[str, Any] = field(repr=False, compare=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - JSON is any value
            if name not in _READ_ON_DEMAND:
                raise AttributeError(name)
            value = self.__dict__[name] = self.source.read_field(self.row, name)
            return value

    def fields(self) -> Mapping[str, Any]:
        """The fields of the task as the store gave them, for callers that need no record."""
        found: Mapping[str, Any] = self.source.read_field(self.row, "fields")
        return found

    @property
    def payload_with_context(self) -> Any:  # noqa: ANN401 - JSON is any value
        """The payload for a worker elsewhere, with the input, item, feedback and outputs."""
        around = {
            "input": self.input,
            "item": self.item,
            "feedback": self.feedback,
            "steps": self.needs or None,
            "prompt": None if self.work is None else self.work.prompt,
            "usd_per_attempt": self.usd_per_attempt,
        }
        told = {name: value for name, value in around.items() if value is not None}
        own = self.payload
        if not told:
            return own
        return (
            own if isinstance(own, dict) else {"payload": own} if own is not None else {}
        ) | told


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewal:
    """One lease to renew, with the progress and the usage of its attempt."""

    task_id: str
    token: str = field(repr=False)
    progress: Any = None
    usage: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """The output of one attempt that succeeded."""

    task_id: str
    token: str = field(repr=False)
    output: Any = None
    usage: Any = None
    commit: NewHead | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Attempt(ReadableRecord):
    """The record of one lease: its owner, and the outcome of its attempt.

    Where the command of the attempt had to be ended, `stopped_at` is the time at which that was
    done, `stopped` counts the processes that were ended, and `left` those that could not be.
    """

    task_id: str
    number: int
    owner: str
    claimed_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    digest: str | None = None
    error: Any = None
    usage: Any = None
    stopped_at: datetime | None = None
    stopped: int = 0
    left: int = 0


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class NamedLease(ReadableRecord):
    """A lease on a key: pass its `fence` on, and its `token` to renew or release it."""

    key: str
    owner: str
    fence: int
    token: str = field(repr=False)
    expires_at: datetime
