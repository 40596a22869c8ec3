"""Attempt spans: an attempt is a span below its task, and an ended task one below its start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Self

from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError
from holdfast.model.moment import count_microseconds
from holdfast.model.task import Assignment, Task
from holdfast.model.trace import derive_span_id, derive_start_span, derive_trace_id
from holdfast.tracing import ActiveSpan, Span, SpanIdentity, Tracer, find_tracer
from holdfast.worker.store_port import StorePort

# A span has the time of the machine that sends it, and not that of the store.
CLOCK = SystemClock()


class NoAttemptSpan(nullcontext["NoAttemptSpan"]):
    """The span of an attempt when nothing is traced."""

    def __enter__(self) -> Self:
        return self

    def fail(self, reason: str) -> None: ...

    def record_task(self, status: str) -> None: ...


NO_SPAN = NoAttemptSpan()


class AttemptTrace(NamedTuple):
    """The trace of an attempt, and its task unless that could not be read."""

    trace_id: str
    task: Task | None


class AttemptSpan:
    """The span of an attempt, in the trace of its run or of its lone task."""

    def __init__(self, tracer: Tracer, assignment: Assignment, known: AttemptTrace) -> None:
        self._tracer = tracer
        self._assignment = assignment
        self._trace_id, self._task = known
        self._entered: ActiveSpan = NO_SPAN

    @contextmanager
    def enter(self) -> Iterator[None]:
        assignment = self._assignment
        identity = SpanIdentity(
            trace_id=self._trace_id, parent_id=derive_span_id(assignment.task_id)
        )
        number = assignment.attempt
        name = f"attempt {number} of {assignment.name}"
        with self._tracer.within(self._span(name, identity, attempt=number)) as self._entered:
            yield

    def fail(self, reason: str) -> None:
        self._entered.fail(reason)

    def record_task(self, status: str) -> None:
        """Record the span of the task, which this attempt has ended."""
        if self._task is None:
            return
        assignment = self._assignment
        identity = SpanIdentity(
            trace_id=self._trace_id,
            span_id=derive_span_id(assignment.task_id),
            parent_id=derive_start_span(assignment.run_id or assignment.task_id),
        )
        span = self._span(assignment.name, identity, status=status)
        self._tracer.record(span, count_microseconds(self._task.created_at), CLOCK.now())

    def _span(self, name: str, identity: SpanIdentity, **more: str | int) -> Span:
        assignment = self._assignment
        values: dict[str, str | int | None] = {
            "task": assignment.task_id,
            "run": assignment.run_id,
            "workflow": assignment.workflow,
            "agent": None if self._task is None else self._task.agent,
            **more,
        }
        present = {f"holdfast.{key}": value for key, value in values.items() if value is not None}
        return Span(name=name, identity=identity, attributes=present)


def trace_attempt(
    store: StorePort, assignment: Assignment
) -> AbstractContextManager[AttemptSpan] | AbstractContextManager[NoAttemptSpan]:
    """Enter the span of an attempt: the spans of its step are below it."""
    known = find_tracer()
    return NO_SPAN if known is None else _open_span(known, store, assignment)


@contextmanager
def _open_span(known: Tracer, store: StorePort, assignment: Assignment) -> Iterator[AttemptSpan]:
    made = AttemptSpan(known, assignment, _read_trace(store, assignment))
    with made.enter():
        yield made


def _read_trace(store: StorePort, assignment: Assignment) -> AttemptTrace:
    root = assignment.run_id or assignment.task_id
    try:
        return AttemptTrace(store.work.trace_of(root), assignment.task)
    except HoldfastError:
        # An attempt does not fail because its trace cannot be read.
        return AttemptTrace(derive_trace_id(root), None)
