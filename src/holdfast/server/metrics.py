"""Counts in the words of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from holdfast.service.views import View

MEDIA = CONTENT_TYPE_LATEST


class _Counts(Collector):
    def __init__(self, counted: View, refused: Mapping[str, int]) -> None:
        self._counted = counted
        self._refused = refused

    def collect(self) -> Iterator[Metric]:
        tasks = GaugeMetricFamily(
            "holdfast_tasks", "Tasks that wait or run", labels=["agent", "state"]
        )
        for agent, states in self._counted["agents"].items():
            for state, number in states.items():
                tasks.add_metric([agent, state], number)
        yield tasks
        yield GaugeMetricFamily(
            "holdfast_runs", "Runs that have not ended", self._counted["runs"]["running"]
        )
        yield GaugeMetricFamily("holdfast_workers", "Workers that live", self._counted["workers"])
        refused = CounterMetricFamily(
            "holdfast_refusals", "What this server refused", labels=["code"]
        )
        for code, number in self._refused.items():
            refused.add_metric([code], number)
        yield refused
        yield conflicts(self._counted)


def conflicts(counted: View) -> Metric:
    """As many as the store tells of, whichever process refused them."""
    text = "Commands and edits refused because they were for another version"
    return CounterMetricFamily("holdfast_conflicts", text, counted["conflicts"])


def exposition(counted: View, refused: Mapping[str, int]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Counts(counted, refused))
    return generate_latest(registry)
