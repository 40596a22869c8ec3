"""What a process tells a collector of what it starts and runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import Holdfast, tracing
from holdfast.engine.input import trace_start as starts
from holdfast.model.trace import derive_trace_id
from holdfast.spans import OpenTelemetryTracer
from holdfast.tracing import Span, SpanIdentity, is_tracing_wanted, read_traceparent
from holdfast.worker.attempt import attempt_span as attempts

TRACE = "12" * 16


class Collected:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OpenTelemetryTracer(self._exporter)

    def of(self, trace_id: str) -> dict[str, ReadableSpan]:
        """The spans of one trace by name."""
        self.tracer.flush()
        found = self._exporter.get_finished_spans()
        return {each.name: each for each in found if ids(each)[0] == trace_id}


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    made = Collected()
    for module in (tracing, starts, attempts):
        monkeypatch.setattr(module, "find_tracer", lambda: made.tracer)
    yield made
    made.tracer.close()


def ids(span: ReadableSpan) -> tuple[str, str, str | None]:
    context, parent = span.context, span.parent
    assert context is not None
    above = None if parent is None else f"{parent.span_id:016x}"
    return f"{context.trace_id:032x}", f"{context.span_id:016x}", above


def test_a_task_and_its_attempts_are_below_what_asked_for_it(
    store_url: str, collected: Collected
) -> None:
    seen: list[str | None] = []
    with Holdfast(store_url, backoff=0.001) as hf:

        @hf.task(max_attempts=2)
        def dig(deep: int) -> int:
            seen.append(tracing.write_traceparent())
            if len(seen) == 1:
                raise ValueError("a stone")
            return deep

        with collected.tracer.within(Span(name="asks", identity=SpanIdentity(trace_id=TRACE))):
            asked = dig.enqueue(3)
        with hf.worker():
            assert asked.result() == 3
            alone = dig.enqueue(4)
            assert alone.result() == 4
    spans = collected.of(TRACE)
    chain = [ids(spans[name]) for name in ("asks", "start dig", "dig")]
    assert [parent for _, _, parent in chain] == [None, chain[0][1], chain[1][1]]
    tries = [ids(spans[f"attempt {number} of dig"]) for number in (1, 2)]
    assert [parent for _, _, parent in tries] == [chain[2][1]] * 2
    assert [f"00-{trace}-{own}-01" for trace, own, _ in tries] == seen[:2]
    assert [spans[f"attempt {n} of dig"].status.is_ok for n in (1, 2)] == [False, True]
    own = collected.of(derive_trace_id(alone.id))
    assert set(own) == {"start dig", "dig", "attempt 1 of dig"}


def test_traces_are_wanted_where_the_standard_variables_say_so() -> None:
    to = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert is_tracing_wanted(to)
    assert is_tracing_wanted({"OTEL_TRACES_EXPORTER": "otlp"})
    assert not is_tracing_wanted({})
    assert not is_tracing_wanted(to | {"OTEL_SDK_DISABLED": "true"})
    assert not is_tracing_wanted(to | {"OTEL_TRACES_EXPORTER": "none"})
    assert read_traceparent(f"00-{TRACE}-{'cd' * 8}-01") == SpanIdentity(
        trace_id=TRACE, parent_id="cd" * 8
    )
    assert read_traceparent("00-nothing") is None
