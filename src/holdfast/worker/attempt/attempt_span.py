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
from holdfast.worker.store_port import Office

# Spans are of the clocks of the machines that send them.
CLOCK = SystemClock()


class Untraced(nullcontext["Untraced"]):
    """Nobody wants to hear of an attempt."""

    def __enter__(self) -> Self:
        return self

    def fail(self, reason: str) -> None: ...

    def end(self, status: str) -> None: ...


UNTRACED = Untraced()


class Known(NamedTuple):
    """What has to be asked for: the trace, and the task."""

    trace_id: str
    task: Task | None


class Traced:
    """An attempt under way, in the trace of its run or of its lone task."""

    def __init__(self, tracer: Tracer, assignment: Assignment, known: Known) -> None:
        self._tracer = tracer
        self._assignment = assignment
        self._trace_id, self._task = known
        self._under: ActiveSpan = UNTRACED

    @contextmanager
    def within(self) -> Iterator[None]:
        assignment = self._assignment
        place = SpanIdentity(trace_id=self._trace_id, parent_id=derive_span_id(assignment.task_id))
        number = assignment.attempt
        name = f"attempt {number} of {assignment.name}"
        with self._tracer.within(self._span(name, place, attempt=number)) as self._under:
            yield

    def fail(self, reason: str) -> None:
        self._under.fail(reason)

    def end(self, status: str) -> None:
        """Tell of the task, which this attempt has ended."""
        if self._task is None:
            return
        assignment = self._assignment
        place = SpanIdentity(
            trace_id=self._trace_id,
            span_id=derive_span_id(assignment.task_id),
            parent_id=derive_start_span(assignment.run_id or assignment.task_id),
        )
        span = self._span(assignment.name, place, status=status)
        self._tracer.record(span, self._task.created_at, CLOCK.now())

    def _span(self, name: str, place: SpanIdentity, **more: str | int) -> Span:
        assignment = self._assignment
        told: dict[str, str | int | None] = {
            "task": assignment.task_id,
            "run": assignment.run_id,
            "workflow": assignment.workflow,
            "agent": None if self._task is None else self._task.agent,
            **more,
        }
        present = {f"holdfast.{key}": value for key, value in told.items() if value is not None}
        return Span(name=name, place=place, attributes=present)


def attempt(
    office: Office, assignment: Assignment
) -> AbstractContextManager[Traced] | AbstractContextManager[Untraced]:
    """Be in the span of an attempt, so that whatever its step does there is below it."""
    known = find_tracer()
    return UNTRACED if known is None else _traced(known, office, assignment)


@contextmanager
def _traced(known: Tracer, office: Office, assignment: Assignment) -> Iterator[Traced]:
    made = Traced(known, assignment, _know(office, assignment))
    with made.within():
        yield made


def _know(office: Office, assignment: Assignment) -> Known:
    root = assignment.run_id or assignment.task_id
    try:
        return Known(office.work.trace_of(root), assignment.task)
    except HoldfastError:
        # To know it is worth no attempt.
        return Known(derive_trace_id(root), None)
