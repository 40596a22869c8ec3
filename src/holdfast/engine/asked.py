"""What every operation has: the rows it is about and its size; and a task that is to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields

from holdfast.model.trace import Trace
from holdfast.store.database import Row

LEAST = 500
ID = 22
Keys = tuple[str, ...]
# The row of a task, by its id.
Look = Callable[[str], Row]


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
        size = LEAST
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
FORGED = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(TaskOperation):
    """A worker's word on its attempt; `fence` is what its token proves."""

    fence: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What a run may use, in millionths of a dollar and attempts, and its microseconds."""

    usd: int | None = None
    usd_per_attempt: int | None = None
    attempts: int | None = None
    time: int | None = None


@dataclass(frozen=True, kw_only=True)
class TaskRow:
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
    placed: bool = False
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
    declares: bool = False
    external: bool = False
    calls: str | None = None
    plan: bool = False
    part: bool = False
    trace: Trace | None = None

    @property
    def size(self) -> int:
        return LEAST + len(self.payload) + len(self.title) + ID * len(self.needs)


# What a task has where nothing else is said.
PLAIN = {each.name: each.default for each in fields(TaskRow) if each.default is not MISSING}
