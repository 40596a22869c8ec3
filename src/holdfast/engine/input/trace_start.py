"""Starts in traces: what is started inside a span goes on in its trace, and is a span there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from holdfast.clock import SystemClock
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.task import NewTask
from holdfast.model.trace import Trace, derive_start_span, derive_trace_id
from holdfast.tracing import Span, SpanIdentity, find_tracer

N = TypeVar("N", NewRun, NewTask)
R = TypeVar("R", bound=CreateResult | list[CreateResult])
T = TypeVar("T")
# Spans have the time of the machine that sends them, not of the database.
CLOCK = SystemClock()


class StartTrace:
    """One call that starts runs or tasks, from before it is submitted until its reply is read."""

    def __init__(self) -> None:
        self._tracer = find_tracer()
        self._above = None if self._tracer is None else self._tracer.current()
        self._began = 0 if self._tracer is None else CLOCK.now()

    def add_trace(self, new: N) -> N:
        """The same new run or task in the trace of the current span, unless it names a trace."""
        if self._above is None or new.trace is not None:
            return new
        return replace(new, trace=self.trace)

    @property
    def trace(self) -> Trace | None:
        """The trace of the span in which the call was made."""
        return None if self._above is None else Trace(trace_id=self._above.trace_id)

    def record_when_read(
        self, read: Callable[[R], T], name: str, trace: Trace | None
    ) -> Callable[[R], T]:
        """A function like `read` that also records the start as a span."""
        if self._tracer is None:
            return read

        def told(reply: R) -> T:
            self.record_start(reply if isinstance(reply, CreateResult) else reply[0], name, trace)
            return read(reply)

        return told

    def record_start(self, created: CreateResult, name: str, trace: Trace | None) -> None:
        """Record as a span that this call started a run or task."""
        if self._tracer is None or not created.created:
            return
        given = derive_trace_id(created.id) if trace is None else trace.trace_id
        above = self._above
        inside = above is not None and above.trace_id == given
        identity = SpanIdentity(
            trace_id=given,
            span_id=derive_start_span(created.id),
            parent_id=above.span_id if above is not None and inside else None,
        )
        kind = "run" if created.id.startswith("r_") else "task"
        span = Span(
            name=f"start {name}", identity=identity, attributes={f"holdfast.{kind}": created.id}
        )
        self._tracer.record(span, self._began, CLOCK.now())
