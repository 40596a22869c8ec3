"""Spans: the tracer for the SDK of OpenTelemetry; imported only where traces are wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags

from holdfast.tracing import Span, SpanIdentity

NANOSECONDS = 1_000
# The ids of the next span, where they are known before the span begins.
_wanted: ContextVar[SpanIdentity | None] = ContextVar("holdfast_wanted_span", default=None)


class _GivenIds(RandomIdGenerator):
    def generate_span_id(self) -> int:
        wanted = _wanted.get()
        known = None if wanted is None else wanted.span_id
        return super().generate_span_id() if known is None else int(known, 16)

    def generate_trace_id(self) -> int:
        wanted = _wanted.get()
        return super().generate_trace_id() if wanted is None else int(wanted.trace_id, 16)


class _ActiveSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def fail(self, reason: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, reason))


class OpenTelemetryTracer:
    """A tracer that sends spans in the background, and the rest when the process ends."""

    def __init__(self, exporter: SpanExporter) -> None:
        named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "holdfast"}
        self._provider = TracerProvider(resource=Resource.create(named), id_generator=_GivenIds())
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("holdfast")

    def current(self) -> SpanIdentity | None:
        found = trace.get_current_span().get_span_context()
        if not found.is_valid:
            return None
        return SpanIdentity(trace_id=f"{found.trace_id:032x}", span_id=f"{found.span_id:016x}")

    def record(self, span: Span, start: int, end: int) -> None:
        self._begin(span, start * NANOSECONDS).end(end * NANOSECONDS)

    @contextmanager
    def within(self, span: Span) -> Iterator[_ActiveSpan]:
        made = self._begin(span)
        with trace.use_span(made, end_on_exit=True, record_exception=False):
            yield _ActiveSpan(made)

    def flush(self) -> None:
        self._provider.force_flush()

    def close(self) -> None:
        self._provider.shutdown()

    def _begin(self, span: Span, start: int | None = None) -> trace.Span:
        before = _wanted.set(span.identity)
        try:
            return self._tracer.start_span(
                span.name,
                self._context_above(span),
                attributes=dict(span.attributes),
                start_time=start,
            )
        finally:
            _wanted.reset(before)

    def _context_above(self, span: Span) -> Context:
        """The context above a span; the sampler decides alike for a trace in every process."""
        identity = span.identity
        if identity.parent_id is None:
            return Context()
        number = int(identity.trace_id, 16)
        decided = self._provider.sampler.should_sample(Context(), number, span.name).decision
        sampled = decided is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT
        above = SpanContext(number, int(identity.parent_id, 16), True, TraceFlags(flags))  # noqa: FBT003 - from elsewhere
        return trace.set_span_in_context(NonRecordingSpan(above), Context())


def make_tracer() -> OpenTelemetryTracer:
    """The tracer that exports to the address in the OTEL_* variables."""
    return OpenTelemetryTracer(OTLPSpanExporter())
