"""Operations: every change that can be submitted to the writer, as a record.

Operations of one noun alone, such as schedules or leases, stand beside their handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

from holdfast.engine.core.task_rows import BASE_SIZE, TaskRow, measure_tasks
from holdfast.model.status import Hold
from holdfast.model.trace import Trace
from holdfast.model.workflow.line import Draft, NewHead
from holdfast.store.database import Row

Keys = tuple[str, ...]
# Reads the row of a task by its id.
TaskLookup = Callable[[str], Row]
# The fence of a report whose token is not genuine: no attempt has this number.
FORGED_FENCE = 0


class Operation:
    """A change that the writer is to make."""

    __slots__ = ()

    @property
    def keys(self) -> Keys:
        """The tasks and runs that it is about; a group has at most one operation for each."""
        return ()

    @property
    def size(self) -> int:
        """About how many bytes the operation sends to the database."""
        size = BASE_SIZE
        for text in self.texts:
            if text is not None:
                size += len(text)
        return size

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The texts of the operation that can be long."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(TaskOperation):
    """A report of a worker on its attempt; `fence` is the number of the attempt in its token."""

    fence: int


class HeldTask(TypedDict):
    """The task that a worker holds, and the fence of its attempt."""

    task_id: str
    fence: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """What a run may use: millionths of a dollar, attempts, and microseconds until its deadline."""

    usd: int | None = None
    usd_per_attempt: int | None = None
    attempts: int | None = None
    time: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Complete(Report):
    """The result of an attempt; in a workspace with the commit that its line gets as its head."""

    output: str
    digest: str
    usage: str | None = None
    head: NewHead | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.output, self.usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fail(Report):
    """The failure of an attempt, with what it `left` in its workspace.

    After a landing that met a conflict the line of its item begins `anew`.
    """

    error: str
    digest: str
    retryable: bool
    jitter: float
    usage: str | None = None
    left: Draft | None = None
    anew: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.error, self.usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Release(Report):
    until: int | None = None
    usage: str | None = None
    # When the usage limit lifts that the agent of the task has reached.
    limit: int | None = None
    draft: Draft | None = None

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
    """The report of recovery on an attempt whose lease has run out."""

    problem: str = '"lost: the worker stopped renewing its lease"'


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlledTask(TaskOperation):
    """An operation of a person or program on one task."""

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
    """An answer to an approval, or to a task that waits for one."""

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
    """Without a `graph` the children form a chain; its pairs name a child and what it needs."""

    graph: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvancePlan(ControlledTask):
    """Look again at a plan as it stands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTask(ControlledTask):
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldTask(ControlledTask):
    reason: Hold
    until: int | None = None
    # The cause of the hold, as JSON text, for whoever asks why.
    detail: str | None = None


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
    """An edit; a `patient` one is not refused while its expected version may still come."""

    changes: dict[str, object]
    expected_version: int | None = None
    patient: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(value for value in self.changes.values() if isinstance(value, str))


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlledRun(RunOperation):
    """An operation of a person or program on one run."""

    actor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelRun(ControlledRun):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldRun(ControlledRun):
    reason: Hold


@dataclass(frozen=True, kw_only=True, slots=True)
class UnholdRun(ControlledRun):
    """With `begins`, a run that does not have the hold begins before its time, if it has one."""

    reason: Hold
    begins: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RaiseBudget(ControlledRun):
    """More millionths of a dollar and more attempts that a run may use."""

    usd: int = 0
    attempts: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpireRun(ControlledRun):
    """The operation of recovery on a run that was not done in time."""

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
    """The task that a run is started for: its epoch, and the depth of the run below the top one."""

    task_id: str
    epoch: int
    # None where a task outside of any run has called.
    root_id: str | None
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
    # Name, version and text of the workflows that the steps of this one call.
    called: frozenset[tuple[str, str, str]] = frozenset()
    trace: Trace | None = None
    bounds: RunLimits = RunLimits()
    scheduled_for: int | None = None
    labels: str | None = None
    keys: Keys = ()

    @property
    def size(self) -> int:
        texts = len(self.input) + len(self.definition) + sum([len(each[2]) for each in self.called])
        return texts + measure_tasks(self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedProgress:
    """How far a task had come in an older store; `after` are the tasks that ended before it."""

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
    """One run of an older store, or one tree of its tasks, with the progress of each task."""

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
    # Tasks that are left to other workers.
    passed: tuple[str, ...] = ()
    # Whether tasks are taken that name no function, and steps whose file names no program.
    bare: bool = True
    # Without `bare`: the agents of which such tasks are taken all the same.
    equipped: tuple[str, ...] = ()
    # A claim that repeats a request gets the same tasks again.
    request: str | None = None
    # Reads the whole row of a task later; without it the whole row is read with the claim.
    look_up_task: TaskLookup | None = None

    @property
    def keys(self) -> Keys:
        return () if self.request is None else (self.request,)


class PulledClaim(Protocol):
    """A standing claim, as far as this room may know it; its class is in `claims`."""

    @property
    def worker(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Pull(Operation):
    """Serve a standing claim in this group, though no task became ready in this process."""

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
    """Changes that time alone causes: scheduled tasks become due, limits lift, keys get room."""

    keys: Keys = ()
