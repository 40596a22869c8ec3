"""Piped store: the store port and the context of a function in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from holdfast.clock import SystemClock
from holdfast.engine.core.operation import HeldTask
from holdfast.engine.state.reports import FinalReport, Reports
from holdfast.model.frozen_record import make_record
from holdfast.model.task import Assignment
from holdfast.randomness import SystemRandomness
from holdfast.settings import Settings
from holdfast.threads import SystemThreads
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Execution, PreparedReport
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.secrets.secret_rules import Cleaner
from holdfast.worker.steps.attempt_pipe import FunctionJob, PipeClient

# The fields of an assignment that its function may ask for.
ASSIGNMENT_FIELDS = (
    *("task_id", "attempt", "expires_at", "run_id", "step", "item_number", "timeout"),
    *("workflow", "workflow_version", "is_step", "token", "name", "epoch", "feedback"),
    "own_feedback",
)


class PipedOperation:
    """One operation of the store: a call waits for its reply, `submit` gives a future."""

    def __init__(self, pipe: PipeClient, name: str) -> None:
        self.submit: Callable[..., Future[Any]] = partial(pipe.submit, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store gives
        return self.submit(*args, **kwargs).result()


@dataclass(frozen=True, kw_only=True)
class PipedPorts:
    """The ports with which reports are made; the worker has proven the token already."""

    settings: Settings
    now: Callable[[], int]
    randomness: SystemRandomness
    secret: bytes = b""


class PipedWork:
    """The operations of attempts, as far as a function needs them."""

    def __init__(self, pipe: PipeClient, ports: PipedPorts) -> None:
        self.reports = Reports(ports)
        self.guard = PipedOperation(pipe, "guard")
        self.effects = PipedOperation(pipe, "effects")
        self.children = PipedOperation(pipe, "children")
        self.check_room = PipedOperation(pipe, "check_room")
        self.trace_of = PipedOperation(pipe, "trace_of")
        self.record_effect = PipedOperation(pipe, "record_effect")
        self.take_signal = PipedOperation(pipe, "take_signal")
        self.spawn = PipedOperation(pipe, "spawn")


class PipedLeases:
    """The named leases of a function."""

    def __init__(self, pipe: PipeClient) -> None:
        self.acquire = PipedOperation(pipe, "acquire")
        self.release = PipedOperation(pipe, "release")


class PipedStore:
    """The store of one attempt, reached through its worker."""

    def __init__(self, pipe: PipeClient, job: FunctionJob) -> None:
        self.store: str = job.store
        self.file: Path | None = job.file
        self.settings = job.settings
        self.clock = SystemClock()
        self.threads = SystemThreads()
        self.now = PipedOperation(pipe, "now")
        ports = PipedPorts(settings=job.settings, now=self.now, randomness=SystemRandomness())
        self.work = PipedWork(pipe, ports)
        self.leases = PipedLeases(pipe)


class PipedSource:
    """The task of an assignment, read when the function asks for it."""

    def __init__(self, pipe: PipeClient) -> None:
        self._pipe = pipe

    def read_field(self, _: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - JSON
        return self._pipe.call(name)


class PipedContext(AttemptContext):
    """The context of a function in a process of its own: its worker writes what it says."""

    def __init__(self, pipe: PipeClient, *given: Any) -> None:
        super().__init__(*given)
        self._pipe = pipe
        self._known_deadline = 0.0

    @property
    def deadline(self) -> float:
        """Until when the lease lasts, asked for when the end that is known comes near."""
        soon = self._store.clock.monotonic() + self._store.settings.lease / 2
        if soon >= self._known_deadline:
            self._known_deadline = self._pipe.call("deadline")
        return self._known_deadline

    @property
    def ended(self) -> bool:
        return self._lease.is_set() or self._store.clock.monotonic() >= self.deadline

    def progress(self, note: object) -> None:
        self._pipe.call("progress", note)

    def log(self, text: object) -> None:
        self._pipe.call("log", str(text))

    def log_end(self, text: str) -> None:
        self._pipe.call("log_end", text)

    def open_step_log(self) -> None:
        """No log here: the worker writes what comes out of the process into the log."""


class PipedExecution(Execution):
    """One attempt in a process of its own, whose report is left for its worker to send."""

    prepared: PreparedReport | None = None

    def __init__(self, pipe: PipeClient, job: FunctionJob) -> None:
        store: Any = PipedStore(pipe, job)
        assignment = make_record(
            Assignment, {**job.assignment, "work": None, "source": PipedSource(pipe), "row": {}}
        )
        # The worker ends the process of an attempt that is over.
        super().__init__(store, assignment, deadline=inf)
        clean = Cleaner(*(partial(_give_redaction, each) for each in job.redactions))
        self.context = PipedContext(pipe, store, assignment, self.ended, clean)

    def _report(
        self, make: Callable[..., FinalReport], *arguments: object, **options: object
    ) -> bool:
        held = HeldTask(task_id=self.task_id, fence=self.assignment.attempt)
        report = make(held, *arguments, **options)
        self.prepared = PreparedReport(report, self.raised, self.raised_traceback)
        return True


def _give_redaction(redaction: Redaction) -> Redaction:
    return redaction
