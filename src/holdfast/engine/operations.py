"""Every change that can be asked of the writer, as a record; `keys` are the rows it is about."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.status import Hold

LEAST = 500
Keys = tuple[str, ...]


class Sized:
    """Something asked of the writer; `size` is about how many bytes it has to send."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return LEAST + sum(map(len, filter(None, self.texts)))

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Those of its texts that can be long."""
        return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOperation(Sized):
    task_id: str

    @property
    def keys(self) -> Keys:
        return (self.task_id,)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOperation(Sized):
    run_id: str

    @property
    def keys(self) -> Keys:
        return (self.run_id,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(TaskOperation):
    """A worker's word on its attempt; `fence` was read from a token that proved genuine."""

    fence: int


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask(Report):
    question: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordEffect(Report):
    name: str
    value: str

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.value,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspend(Report):
    """Give the task back until a time or until what it waits for; `name` is remembered with it."""

    until: int | None = None
    awaited: str | None = None
    name: str | None = None
    value: str = "null"

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.value,)


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeSignal(Report):
    target: str
    signal: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Spawn(Report):
    """Children of a running attempt, made once: their ids are remembered under `name`."""

    name: str
    tasks: tuple[TaskRow, ...]
    actor: str

    @property
    def size(self) -> int:
        return sum(task.size for task in self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class SendSignal(Sized):
    id: str
    target: str
    signal: str
    payload: str
    key: str | None
    actor: str

    @property
    def keys(self) -> Keys:
        return (self.target,)

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.payload,)


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
class Controlled(TaskOperation):
    actor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EnqueueTask(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNow(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelTask(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ResetTask(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryTask(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ReopenTask(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteTask(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class SettleTask(Controlled):
    """A person's word on an approval, or on a task that waits for one."""

    approved: bool
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StartPlanning(Controlled):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalizePlan(Controlled):
    """Without a `graph` the children form a chain; with one, its pairs say who needs whom."""

    graph: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTask(Controlled):
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldTask(Controlled):
    reason: Hold
    until: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UnholdTask(Controlled):
    reason: Hold


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockTask(Controlled):
    on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class UnblockTask(Controlled):
    on: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EditTask(Controlled):
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
class RetryRun(ControlledRun):
    step: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvanceRun(RunOperation):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRow(Sized):
    """A task that passed every check, in the terms of the store."""

    id: str
    kind: str = "work"
    run_id: str | None = None
    parent_id: str | None = None
    parent_epoch: int | None = None
    step: str | None = None
    title: str
    agent: str
    status: str
    needs: tuple[str, ...] = ()
    scheduled_for: int | None = None
    priority: int = 0
    position: int = 0
    tags: str = "[]"
    key: str | None = None
    body_digest: str = ""
    concurrency_key: str | None = None
    capacity: int = 1
    max_attempts: int
    max_lost: int
    backoff: int
    backoff_max: int
    timeout: int | None = None
    payload: str = "null"
    item: int | None = None
    conditional: bool = False
    gives: bool = True
    verifies: str | None = None
    max_rounds: int = 1
    on_failure: str = "fail"

    @property
    def shape(self) -> tuple[object, ...]:
        """What is more than a plain task: its place in a loop, its condition, its rounds."""
        place = (self.item, self.conditional, self.gives)
        return (*place, self.verifies, self.max_rounds, self.on_failure)

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.payload, self.title, *self.needs)


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateTasks(Sized):
    tasks: tuple[TaskRow, ...]
    actor: str
    keys: Keys = ()

    @property
    def size(self) -> int:
        return sum(task.size for task in self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class StartRun(Sized):
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
    tasks: tuple[TaskRow, ...]
    actor: str
    keys: Keys = ()

    @property
    def size(self) -> int:
        return len(self.input) + len(self.definition) + sum(task.size for task in self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Sized):
    worker: str
    agents: tuple[str, ...]
    tags: str
    count: int
    lease: int
    passed: tuple[str, ...] = ()
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimById(TaskOperation):
    worker: str
    agents: tuple[str, ...]
    tags: str
    lease: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep(Sized):
    """Whatever time alone brings: scheduled tasks, limits that lift, keys with room."""

    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AcquireLease(Sized):
    key: str
    owner: str
    ttl: int
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RenewLease(Sized):
    key: str
    fence: int
    ttl: int
    keys: Keys = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseLease(Sized):
    key: str
    fence: int
    keys: Keys = ()


Operation = (
    Complete
    | Fail
    | Release
    | Renew
    | Ask
    | RecordEffect
    | Suspend
    | TakeSignal
    | Spawn
    | SendSignal
    | Lose
    | Controlled
    | ControlledRun
    | AdvanceRun
    | CreateTasks
    | StartRun
    | Claim
    | ClaimById
    | Sweep
    | AcquireLease
    | RenewLease
    | ReleaseLease
)
