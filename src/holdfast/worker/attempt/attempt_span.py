"""An attempt as a span below its task, and its task, when it is over, as one below its start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Self

from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError
from holdfast.model.task import Assignment, Task
from holdfast.model.trace import derive_span_id, derive_start_span, derive_trace_id
from holdfast.tracing import ActiveSpan, Span, SpanIdentity, Tracer, find_tracer
from holdfast.worker.store_port import StorePort

# Spans are of the clocks of the machines that send them.
CLOCK = SystemClock()


class NoAttemptSpan(nullcontext["NoAttemptSpan"]):
    """Nobody wants to hear of an attempt."""

    def __enter__(self) -> Self:
        return self

    def fail(self, reason: str) -> None: ...

    def end(self, status: str) -> None: ...


NO_SPAN = NoAttemptSpan()


class AttemptTrace(NamedTuple):
    """What has to be asked for: the trace, and the task."""

    trace_id: str
    task: Task | None


class AttemptSpan:
    """An attempt under way, in the trace of its run or of its lone task."""

    def __init__(self, tracer: Tracer, assignment: Assignment, known: AttemptTrace) -> None:
        self._tracer = tracer
        self._assignment = assignment
        self._trace_id, self._task = known
        self._entered: ActiveSpan = NO_SPAN

    @contextmanager
    def within(self) -> Iterator[None]:
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

    def end(self, status: str) -> None:
        """Tell of the task, which this attempt has ended."""
        if self._task is None:
            return
        assignment = self._assignment
        identity = SpanIdentity(
            trace_id=self._trace_id,
            span_id=derive_span_id(assignment.task_id),
            parent_id=derive_start_span(assignment.run_id or assignment.task_id),
        )
        span = self._span(assignment.name, identity, status=status)
        self._tracer.record(span, self._task.created_at, CLOCK.now())

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
    """Be in the span of an attempt, so that whatever its step does there is below it."""
    known = find_tracer()
    return NO_SPAN if known is None else _open_span(known, store, assignment)


@contextmanager
def _open_span(known: Tracer, store: StorePort, assignment: Assignment) -> Iterator[AttemptSpan]:
    made = AttemptSpan(known, assignment, _read_trace(store, assignment))
    with made.within():
        yield made


def _read_trace(store: StorePort, assignment: Assignment) -> AttemptTrace:
    root = assignment.run_id or assignment.task_id
    try:
        return AttemptTrace(store.work.trace_of(root), assignment.task)
    except HoldfastError:
        # To know it is worth no attempt.
        return AttemptTrace(derive_trace_id(root), None)
