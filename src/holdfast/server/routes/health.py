"""Health routes: liveness, readiness, metrics for Prometheus, and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fastapi import Request
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.responses import PlainTextResponse, Response

from holdfast.server.exception_handlers import JsonAnswer, Problem
from holdfast.server.request_context import Context
from holdfast.server.route_table import ALL_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.admin.metrics import WAIT_BOUNDS, StoreMetrics, WaitHistogram
from holdfast.service.queries.views import View

MEDIA = CONTENT_TYPE_LATEST
LOST_EVENT, CONFLICT_EVENT = "task.lost", "run.conflict"


@dataclass(frozen=True, kw_only=True)
class ServerCounts:
    """What the store holds, what goes on in it, and what this server does."""

    stored: View
    reading: StoreMetrics
    refused: Mapping[str, int]
    # Groups written, by the number of bits of the count of their operations.
    groups: Mapping[int, int]
    operations: int
    waiting: int
    readers: int


class _MetricsCollector(Collector):
    def __init__(self, counts: ServerCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield from self._stored()
        yield from self._going_on()
        yield from self._served()

    def _stored(self) -> Iterator[Metric]:
        stored = self._counts.stored
        tasks = GaugeMetricFamily(
            "holdfast_tasks", "Tasks that wait or run", labels=["agent", "state"]
        )
        for agent, states in stored["agents"].items():
            for state, number in states.items():
                tasks.add_metric([agent, state], number)
        yield tasks
        yield _make_gauge("holdfast_runs", "Runs that have not ended", stored["runs"]["running"])
        yield _make_gauge("holdfast_workers", "Workers that live", stored["workers"])

    def _going_on(self) -> Iterator[Metric]:
        reading = self._counts.reading
        yield _make_counter(
            "holdfast_events", "Events of the store since this server began", "type", reading.events
        )
        yield CounterMetricFamily(
            "holdfast_leases_lost",
            "Attempts whose lease ran out, since this server began",
            reading.events[LOST_EVENT],
        )
        yield CounterMetricFamily(
            "holdfast_conflicts",
            "Commands and edits for another version, refused since this server began",
            reading.events[CONFLICT_EVENT],
        )
        yield _make_wait_histogram(reading.waits)
        lags = GaugeMetricFamily(
            "holdfast_bus_lag", "Messages that a group has to read", labels=["channel", "group"]
        )
        for each in reading.lags:
            lags.add_metric([each.channel, each.group], each.messages)
        yield lags
        parked = GaugeMetricFamily(
            "holdfast_bus_parked", "Messages that wait for a person", labels=["handler"]
        )
        for handler, number in reading.parked.items():
            parked.add_metric([handler], number)
        yield parked

    def _served(self) -> Iterator[Metric]:
        counts = self._counts
        yield _make_counter("holdfast_refusals", "What this server refused", "code", counts.refused)
        yield _make_group_histogram(counts.groups, counts.operations)
        yield _make_gauge("holdfast_long_polls", "Workers that wait here for work", counts.waiting)
        yield _make_gauge("holdfast_stream_readers", "Readers of events here", counts.readers)


def render_metrics(counts: ServerCounts) -> bytes:
    registry = CollectorRegistry()
    registry.register(_MetricsCollector(counts))
    return generate_latest(registry)


def _make_gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value)


def _make_counter(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    made = CounterMetricFamily(name, text, labels=[label])
    for each, number in sorted(values.items()):
        made.add_metric([each], number)
    return made


def _make_wait_histogram(waits: WaitHistogram) -> Metric:
    text = "How long tasks were ready before they were claimed, of the newest at each look"
    bounds = [*(str(float(each)) for each in WAIT_BOUNDS), "+Inf"]
    return _make_histogram(
        "holdfast_dispatch_seconds",
        text,
        dict(zip(bounds, waits.counts, strict=True)),
        waits.seconds,
    )


def _make_group_histogram(groups: Mapping[int, int], operations: int) -> Metric:
    most = max(groups, default=0)
    by_size = {str(2**bits - 1.0): groups.get(bits, 0) for bits in range(1, most + 1)}
    text = "Operations that were written in one transaction"
    return _make_histogram("holdfast_group_size", text, {**by_size, "+Inf": 0}, operations)


def _make_histogram(name: str, text: str, counts: Mapping[str, int], total: float) -> Metric:
    so_far, buckets = 0, []
    for bound, number in counts.items():
        so_far += number
        buckets.append((bound, float(so_far)))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=total)


table = RouteTable(tag="health", prefix="")


@table.route("GET", "/healthz", ALL_ROLES, answers=responses.AliveResponse)
async def alive() -> JsonAnswer:
    """That the process answers; it says nothing of the store."""
    return JsonAnswer({"ok": True})


@table.route("GET", "/readyz", ALL_ROLES, answers=responses.AliveResponse)
def ready(context: Context) -> JsonAnswer:
    """That the store can be read and written, and that the server is not about to stop."""
    if context.server_state.closing:
        raise Problem(503, "shutting_down", "this server is going", {"Retry-After": "1"})
    context.service.check_ready()
    return JsonAnswer({"ok": True})


@table.route("GET", "/metrics", VIEWER_ROLES, kind=PlainTextResponse)
def metrics(context: Context) -> Response:
    """Counts for Prometheus."""
    server_state = context.server_state
    counts = ServerCounts(
        stored=context.service.statistics(),
        reading=server_state.meter.read(),
        refused=dict(server_state.refused),
        groups=server_state.meter.groups,
        operations=server_state.meter.operations,
        waiting=server_state.waiting,
        readers=server_state.readers,
    )
    return Response(render_metrics(counts), media_type=MEDIA)


@table.route("GET", "/openapi.json", ALL_ROLES, answers=responses.DocumentResponse)
async def document(request: Request) -> JsonAnswer:
    """All of this, as OpenAPI."""
    return JsonAnswer(request.app.openapi())
