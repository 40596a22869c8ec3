"""A task as it is asked for, as it stands, and as a worker receives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import TERMINAL, Hold, PlanningPhase, Status, TaskKind
from holdfast.model.trace import Trace
from holdfast.model.units import Moment
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Concurrency

VERIFYING = "verifying"


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """What a caller asks for; the writer gives it its id and checks every field.

    `scheduled_for` is a datetime with a time zone, the same as text in ISO 8601, a number of
    microseconds since 1970, or a duration from now by the database's clock: "2s" or a timedelta.
    With `plan` it is being planned from the start: it is worked on by children, which are created
    with it as their `parent`; a `part` is only taken by a plan. Without a `position` it is the last
    of a plan, else at 0; of two at one place the older comes first. With a `trace` its events
    belong to that.
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
    trace: Trace | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Lease(ReadableRecord):
    """Who works on a task, and until when unless renewed."""

    owner: str
    expires_at: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Task(ReadableRecord):
    """A task as it stands; times are microseconds since 1970, `state` is what a person sees."""

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
    # The workflow whose run stands for it: while it waits, `waits_for` is that run.
    calls: str | None = None
    # When hold `limit` lifts by itself: its own, or that of its agent.
    held_until: int | None = None
    # Of a group that is looked at while it is open.
    children: int | None = None
    children_done: int | None = None
    # Whether its verifier is the one that runs, or is next.
    verifying: bool = False
    # Of one without a run: whether something that it needs has failed or was cancelled.
    need_lost: bool = False

    @property
    def state(self) -> str:
        """What a person sees; derived, never stored."""
        phase = self.planning_phase if self.status is Status.IDLE else PlanningPhase.NONE
        if self.status is not Status.QUEUED and phase is not PlanningPhase.FINALIZED:
            return self._state_of_status if phase is PlanningPhase.NONE else "planning"
        if self.run_holds & Hold.FAILING or self.need_lost:
            return "stalled"
        if self.blocked:
            return "blocked"
        if self.holds or self.run_holds:
            return "held"
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
    """Where the fields of assignments are read that nobody has asked for yet."""

    def read_field(self, row: Mapping[str, Any], name: str) -> Any: ...  # noqa: ANN401 - JSON


_READ_ON_DEMAND = frozenset(
    {"token", "task", "name", "epoch", "payload", "input", "item", "needs", "feedback"}
    | {"own_feedback"}
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Assignment(ReadableRecord):
    """One lease of one task, with the token that every write under it must carry.

    `item` is the value of the nearest loop's item, `feedback` what was said of the work so far:
    of the task, or of the loop or item it is part of. A worker in the program itself reads its
    `task` when it is first asked for, as that stands by then; anybody else is given it as claimed.
    """

    task_id: str
    attempt: int
    expires_at: int
    run_id: str | None = None
    step: str | None = None
    item_number: int | None = None
    timeout: float | None = None
    workflow: str | None = None
    workflow_version: str | None = None
    # Whether it carries out a step of a workflow, and not a call of a task function.
    is_step: bool = False
    # What it may use, in dollars, where the budget of its run says so.
    usd_per_attempt: float | None = None
    # The rest is read when it is first asked for: most steps want little of it.
    token: str = field(repr=False)
    # Not shown, because to show it may be to ask the store for it.
    task: Task = field(repr=False)
    # Its step, or its title where it has none.
    name: str
    epoch: int
    payload: Any
    input: Any
    item: Any
    needs: dict[str, Any]
    feedback: Any
    # What was said of the task itself.
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
        """The task as the store gave it, for who has no use for a record of it."""
        found: Mapping[str, Any] = self.source.read_field(self.row, "fields")
        return found

    @property
    def payload_with_context(self) -> Any:  # noqa: ANN401 - JSON is any value
        """What the step works on, as a worker elsewhere is given it: with what is around it."""
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
    """One lease to be kept, and how far its work has come."""

    task_id: str
    token: str = field(repr=False)
    progress: Any = None
    usage: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What one attempt gives when it has come to its end well."""

    task_id: str
    token: str = field(repr=False)
    output: Any = None
    usage: Any = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Attempt(ReadableRecord):
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


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class NamedLease(ReadableRecord):
    """A lease on a key: pass its `fence` on, and its `token` to renew or release it."""

    key: str
    owner: str
    fence: int
    token: str = field(repr=False)
    expires_at: int
