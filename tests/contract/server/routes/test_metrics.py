"""What a server tells Prometheus: of the store whoever changed it, and of itself."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from holdfast.bus import Channel, Consumer, Envelope, Handler, Park, SqlBus, Subscription
from holdfast.engine.engine import engine_of
from tests.contract.server.local_server import Served
from tests.race.racers import eventually

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "operations.md"
Labels = frozenset[tuple[str, str]]


def scrape(server: Served) -> dict[tuple[str, Labels], float]:
    text = server("viewer").get(f"{server.url}/metrics").text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(server: Served, name: str, **labels: str) -> float:
    return scrape(server).get((f"holdfast_{name}", frozenset(labels.items())), 0.0)


def test_depth_rates_waits_losses_and_refusals_are_told(server: Served) -> None:
    for agent in ("builder", "builder", "tester"):
        server.add(agent=agent)
    (got,) = server.claim(agents=["builder"], lease_seconds=0.001)
    assert eventually(lambda: server.hf.tasks.get(got["task"]["id"]).lost == 1)
    report = {"task_id": got["task"]["id"], "token": got["token"]}
    server("worker").post("/claims/complete", json={"results": [report, report]})
    server("worker").post("/claims/renew", json={"leases": [report]})
    server("worker").post(f"/claims/{report['task_id']}/guard", json={"token": got["token"]})
    assert value(server, "tasks", agent="builder", state="ready") == 2
    assert value(server, "tasks", agent="tester", state="ready") == 1
    # What is under way elsewhere on the database is waited for by the next look.
    assert eventually(lambda: value(server, "leases_lost_total") == 1)
    told = scrape(server)
    seen = {name: number for (name, labels), number in told.items() if not labels}
    assert told["holdfast_events_total", frozenset({("type", "task.running")})] == 1
    assert told["holdfast_refusals_total", frozenset({("code", "stale_token")})] == 3
    assert seen["holdfast_dispatch_seconds_count"] == 1
    assert 0 < seen["holdfast_dispatch_seconds_sum"] < 30
    assert seen["holdfast_group_size_count"] <= seen["holdfast_group_size_sum"]
    assert seen["holdfast_workers"] == 1


def _refuse(*_: object) -> None:
    raise Park("no retry would help")


def test_the_lag_of_a_group_and_what_is_parked_are_told(server: Served) -> None:
    bus = SqlBus(engine_of(server.hf))
    audit, tasks = (
        Subscription(channel=channel, group="audit") for channel in (Channel.EVENTS, Channel.TASKS)
    )
    bus.subscribe(audit)
    server.add()
    assert value(server, "bus_lag", channel="workflow.events", group="audit") == 1
    consumer = Consumer(engine_of(server.hf), bus, tasks, [Handler(name="pay", handle=_refuse)])
    made = Envelope(message_id="m", trace_id="a" * 32, type="x", created_at=1)
    bus.publish_command(Channel.TASKS, made)
    assert value(server, "bus_lag", channel="agent.tasks", group="audit") == 1
    consumer.drain()
    consumer.close()
    bus.close()
    assert value(server, "bus_lag", channel="agent.tasks", group="audit") == 0
    assert value(server, "bus_parked", handler="audit/pay") == 1


def test_waiting_callers_and_readers_of_the_stream_are_counted(quick_server: Served) -> None:
    server = quick_server
    with server("viewer").stream("GET", "/stream") as stream:
        lines = stream.iter_lines()
        next(lines)
        assert value(server, "stream_readers") == 1
        assert not next(lines)
    assert eventually(lambda: value(server, "stream_readers") == 0)
    assert value(server, "long_polls") == 0


def test_the_page_about_operations_names_what_is_told_and_nothing_else(
    quick_server: Served,
) -> None:
    text = quick_server("viewer").get(f"{quick_server.url}/metrics").text
    rows = re.findall(r"^\| (`holdfast_.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(holdfast_\w+)", row)}
    told = re.findall(r"^# TYPE (holdfast_\w+) ", text, re.MULTILINE)
    assert named == set(told)
