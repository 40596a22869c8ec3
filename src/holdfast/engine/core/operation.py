"""Every change that can be asked of the writer, as a record; `keys` are the rows it is about.

What every operation has: the rows it is about and its size; and a task that is to be.

What is asked about a plan as it stands: that it be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.engine.core.task_rows import BASE_SIZE, TaskRow, measure_tasks
from holdfast.model.status import Hold
from holdfast.model.trace import Trace
from holdfast.store.database import Row

Keys = tuple[str, ...]
# The row of a task, by its id.
TaskLookup = Callable[[str], Row]


class Operation:
    """A change that is asked of the writer, about the rows that `keys` names."""

    __slots__ = ()

    @property
    def keys(self) -> Keys:
        """The tasks and runs that it is about: one group holds at most one operation for each."""
        return ()

    @property
    def size(self) -> int:
        """About how many bytes it has to send."""
        size = BASE_SIZE
        for text in self.texts:
            if text is not None:
                size += len(text)
        return size

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Those of its texts that can be long."""
        return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOperation(Operation):
    task_id: str

    @property
    def keys(self) -> Keys:
        return (self.task_id,)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOperation(Operation):
    run_id: str

    @property
    def keys(self) -> Keys:
        return (self.run_id,)


# What a token that is not genuine fences with: no attempt has it.
FORGED_FENCE = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(TaskOperation):
    """A worker's word on its attempt; `fence` is what its token proves."""

    fence: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """What a run may use, in millionths of a dollar and attempts, and its microseconds."""

    usd: int | None = None
    usd_per_attempt: int | None = None
    attempts: int | None = None
    time: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Complete(Report):
    output: str
    digest: str
    usage: str | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.output, self.usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fail(Report):
    error: str
    digest: str
    retryable: bool
    jitter: float
    usage: str | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.error, self.usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Release(Report):
    until: int | None = None
    usage: str | None = None
    # When the usage limit lifts that its agent has reached.
    limit: int | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.usage,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Renew(Report):
    lease: int
    progress: str | None = None
    usage: str | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.progress, self.usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lose(Report):
    """Recovery's word on an attempt whose lease has run out."""

    problem: str = '"lost: the worker stopped renewing its lease"'


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlledTask(TaskOperation):
    actor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EnqueueTask(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNow(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelTask(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ResetTask(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryTask(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ReopenTask(ControlledTask):
    follow_up: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteTask(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class SettleTask(ControlledTask):
    """A person's word on an approval, or on a task that waits for one."""

    approved: bool
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StartPlanning(ControlledTask):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ReorderPlan(ControlledTask):
    order: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalizePlan(ControlledTask):
    """Without a `graph` the children form a chain; with one, its pairs say who needs whom."""

    graph: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTask(ControlledTask):
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldTask(ControlledTask):
    reason: Hold
    until: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UnholdTask(ControlledTask):
    reason: Hold


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockTask(ControlledTask):
    on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class UnblockTask(ControlledTask):
    on: tuple[str, ...] | None = None
    by_hand: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class EditTask(ControlledTask):
    changes: dict[str, object]
    expected_version: int | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(value for value in self.changes.values() if isinstance(value, str))


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlledRun(RunOperation):
    actor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelRun(ControlledRun):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldRun(ControlledRun):
    reason: Hold


@dataclass(frozen=True, kw_only=True, slots=True)
class UnholdRun(ControlledRun):
    reason: Hold


@dataclass(frozen=True, kw_only=True, slots=True)
class RaiseBudget(ControlledRun):
    """More of what a run may use, in millionths of a dollar and in attempts."""

    usd: int = 0
    attempts: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpireRun(ControlledRun):
    """Recovery's word on a run that was not done in time."""

    actor: str = "recovery"


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRun(ControlledRun):
    step: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvanceRun(RunOperation):
    pass


@dataclass(frozen=True, kw_only=True)
class CreateTasks(Operation):
    tasks: tuple[TaskRow, ...]
    actor: str
    keys: Keys = ()

    @property
    def size(self) -> int:
        return measure_tasks(self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCaller:
    """The task that a run is started for, in which epoch, and where that stands among runs."""

    task_id: str
    epoch: int
    root_id: str
    depth: int


@dataclass(frozen=True, kw_only=True)
class StartRun(Operation):
    run_id: str
    workflow: str
    workflow_version: str
    definition: str
    key: str | None
    body_digest: str
    input: str
    priority: int
    concurrency_key: str | None
    capacity: int
    tasks: Sequence[TaskRow]
    actor: str
    caller: RunCaller | None = None
    # Name, version and text of the workflows that its steps call.
    called: frozenset[tuple[str, str, str]] = frozenset()
    trace: Trace | None = None
    bounds: RunLimits = RunLimits()
    keys: Keys = ()

    @property
    def size(self) -> int:
        texts = len(self.input) + len(self.definition) + sum([len(each[2]) for each in self.called])
        return texts + measure_tasks(self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedProgress:
    """How far a task had come in an older store; `after` are those that ended before it."""

    task_id: str
    agent: str
    ended: str | None = None
    result: str = "null"
    after: tuple[str, ...] = ()
    enqueue: bool = False
    phase: str = "none"
    settled: bool = False
    late: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Import(Operation):
    """One run of an older store, or one tree of its tasks, with the past of each task."""

    run: StartRun | None = None
    tasks: tuple[TaskRow, ...] = ()
    past: tuple[ImportedProgress, ...]
    actor: str
    lease: int
    cancelled: bool = False
    keys: Keys = ()

    @property
    def size(self) -> int:
        rows = measure_tasks(self.tasks) if self.run is None else self.run.size
        return rows + sum(len(each.result) for each in self.past)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Operation):
    worker: str
    agents: tuple[str, ...]
    tags: str
    count: int
    lease: int
    passed: tuple[str, ...] = ()
    # Whether it takes tasks, too, that name no function, and steps whose file has no program.
    bare: bool = True
    # The same one again gets the same tasks.
    request: str | None = None
    # How the rest of a task is read when it is asked for; without it all of it is given at once.
    look_up_task: TaskLookup | None = None

    @property
    def keys(self) -> Keys:
        return () if self.request is None else (self.request,)


class PulledClaim(Protocol):
    """A worker's claim that the writer serves by itself whenever work becomes ready."""

    @property
    def worker(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Pull(Operation):
    """Have a standing claim served, though nothing in this process says that work is there."""

    standing_claim: PulledClaim
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimById(TaskOperation):
    worker: str
    agents: tuple[str, ...]
    tags: str
    lease: int
    request: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep(Operation):
    """Whatever time alone brings: scheduled tasks, limits that lift, keys with room."""

    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvancePlan(ControlledTask):
    pass
