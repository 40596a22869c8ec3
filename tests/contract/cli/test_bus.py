"""The bus by the command line: groups, messages, and what is parked."""

from __future__ import annotations

import io
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.bus import (
    Channel,
    Consumer,
    ConsumerOptions,
    Envelope,
    Handler,
    RedisBus,
    SqlBus,
    Subscription,
    write_envelope,
)
from holdfast.bus.relay import Relay
from holdfast.engine.engine import Engine
from holdfast.model.retry import RetryPolicy
from holdfast.service.admin.bus import run_bus_duties
from holdfast.settings import KeepTimes
from tests import servers
from tests.contract.bus.worlds import message
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import create, take
from tests.race.racers import eventually

COMMANDS = Subscription(channel=Channel.COMMANDS, group="service")
DUTIES = {"relay/redis", "retention"}
HEARD = [("workflow.commands", "holdfast"), ("agent.results", "holdfast")]
SERVICE = {"channel": "workflow.commands", "group": "service"}


def fail(envelope: Envelope, _: object) -> None:
    raise ValueError(f"no account for {envelope.message_id}")


@pytest.fixture
def consumer(engine: Engine) -> Iterator[Consumer]:
    """One whose handler fails, and parks at once."""
    bus = SqlBus(engine)
    options = ConsumerOptions(retry=RetryPolicy(max_attempts=1))
    made = Consumer(engine, bus, COMMANDS, [Handler(name="pay", handle=fail)], options)
    yield made
    made.close()
    bus.close()


def publish(typed: Typed, monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(write_envelope(message(name))))
    return typed.ok("bus", "publish", "workflow.commands")


def listed(typed: Typed) -> list[tuple[str, str]]:
    return [(each["channel"], each["group"]) for each in typed.json("bus", "groups")["items"]]


def test_groups_are_listed_with_what_they_have_before_them(
    consumer: Consumer, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert publish(typed, monkeypatch, "m1") == "m1 is on workflow.commands\n"
    assert typed.json("bus", "groups")["items"] == [
        {**SERVICE, "lag": 1, "waiting": 0, "parked": 0, "readers": []}
    ]
    listed = typed.ok("bus", "groups").splitlines()[1].split()
    assert listed == ["workflow.commands", "service", "1", "0", "0", "nobody"]
    assert typed.ok("bus", "lag", "workflow.commands", "service") == "1\n"
    consumer.drain()
    behind = typed.json("bus", "lag", "workflow.commands", "service")
    (reader,) = behind.pop("readers")
    assert behind == {**SERVICE, "lag": 0, "waiting": 1, "parked": 1}
    assert reader["name"] == f"service-{socket.gethostname()}-0"
    assert reader["partitions"] == 4
    told = typed.ok("bus", "groups").splitlines()[1]
    assert f"{reader['name']} (for 0" in told
    assert told.endswith("4 partitions)")
    assert "there is service" in typed.refused(2, "bus", "lag", "workflow.commands", "other")
    assert "workflow.events" in typed.refused(2, "bus", "lag", "nothing", "service")
    forget = ("bus", "forget", "workflow.commands", "service")
    assert f"service is read by {consumer.name}; stop that first" in typed.refused(2, *forget)
    consumer.close()
    assert typed.ok(*forget) == "service is forgotten\n"
    assert typed.json("bus", "groups") == {"items": []}
    assert "Consumer" in typed("bus", "groups").err


def test_the_newest_messages_of_a_channel_are_shown(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = create(engine), create(engine)
    shown = typed.ok("bus", "tail", "-n", "1")
    assert f"task.created  {second}  {second}.1" in shown
    told = typed.json("bus", "tail")["items"]
    assert [each["task_id"] for each in told] == [first, second]
    publish(typed, monkeypatch, "m1")
    assert typed.json("bus", "tail", "workflow.commands")["items"][0]["payload"] == "m1"


@pytest.mark.parametrize("payload", [{"token": "1.secret"}, [[{"token": {"of": "secret"}}]]])
def test_a_token_in_a_message_is_not_shown(engine: Engine, typed: Typed, payload: object) -> None:
    bus = SqlBus(engine)
    bus.publish_event(Channel.RESULTS, replace(message("m1"), payload=payload))
    bus.close()
    shown = typed.ok("bus", "tail", "agent.results", "--json")
    assert ("secret" in shown, "***" in shown) == (False, True)


def test_a_publisher_is_told_when_no_group_reads_the_channel(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.start()
    monkeypatch.setattr("sys.stdin", io.StringIO(write_envelope(message("m1"))))
    said = typed("bus", "publish", "workflow.commands").err
    assert "No group reads workflow.commands" in said
    assert "holdfast up --hear" in said
    with run_bus_duties(engine, KeepTimes(), consume_commands=True):
        assert eventually(lambda: listed(typed) == HEARD)
        monkeypatch.setattr("sys.stdin", io.StringIO(write_envelope(message("m2"))))
        assert typed("bus", "publish", "workflow.commands").err == ""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_process_carries_out_commands_and_takes_results_over_the_bus(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch, *, elsewhere: bool
) -> None:
    task, cancelled = create(engine), create(engine)
    token = take(engine, task).token
    cancel = replace(message("m1", kind="task.cancel"), run_id=None, task_id=cancelled, payload={})
    done = replace(
        message("m2", kind="attempt.completed"),
        run_id=None,
        task_id=task,
        payload={"token": token, "output": 7},
    )
    with servers.redis_server() as url:
        if elsewhere:
            monkeypatch.setenv("HOLDFAST_BUS", url)
        with run_bus_duties(engine, KeepTimes(), url if elsewhere else None, consume_commands=True):
            assert eventually(lambda: listed(typed) == HEARD)
            for channel, each in (("workflow.commands", cancel), ("agent.results", done)):
                monkeypatch.setattr("sys.stdin", io.StringIO(write_envelope(each)))
                typed.ok("bus", "publish", channel)
            assert eventually(lambda: engine.tasks.get(cancelled).status == "cancelled")
            assert eventually(lambda: engine.tasks.get(task).output == 7)


def test_a_message_that_is_no_envelope_is_refused(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed.ok("db", "upgrade")
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    assert "message_id: is missing" in typed.refused(2, "bus", "publish", "workflow.commands")


def test_a_parked_message_is_shown_replayed_and_dropped(
    consumer: Consumer, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Nothing is parked" in typed("bus", "parked").err
    for name in ("m1", "m2"):
        publish(typed, monkeypatch, name)
    consumer.drain()
    shown = typed("bus", "parked")
    assert "service/pay" in shown.out
    assert "ValueError: no account for m1" in shown.out
    assert "holdfast bus replay" in shown.err
    assert [each["message_id"] for each in typed.json("bus", "parked")["items"]] == ["m1"]
    waiting = typed.json("bus", "parked", "--all")["items"]
    assert [(each["message_id"], each["tries"]) for each in waiting] == [("m1", 1), ("m2", 0)]
    told = typed.ok("bus", "replay", "service/pay", "m1")
    assert told == "m1 is tried again by the next consumer of service/pay\n"
    assert "holdfast bus parked" in typed.refused(2, "bus", "replay", "service/pay", "m1")
    consumer.drain()
    assert typed.json("bus", "drop", "service/pay", "m1")["ok"]
    consumer.drain()
    assert [each["message_id"] for each in typed.json("bus", "parked")["items"]] == ["m2"]


def test_a_replayed_message_is_shown_until_a_consumer_has_tried_it(
    consumer: Consumer, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("m1", "m2"):
        publish(typed, monkeypatch, name)
    consumer.drain()
    typed.ok("bus", "replay", "service/pay", "m1")
    (kept,) = typed.json("bus", "parked")["items"]
    assert (kept["message_id"], kept["state"], kept["tries"]) == ("m1", "replayed", 0)
    assert "replayed, for the next consumer" in typed.ok("bus", "parked")
    lag = typed("bus", "lag", *SERVICE.values())
    assert (lag.out, "2 messages of this group in the store, 0 of them parked" in lag.err) == (
        "0\n",
        True,
    )
    assert (
        "2 messages of this channel in the store" in typed("bus", "tail", "workflow.commands").err
    )
    states = [each["state"] for each in typed.json("bus", "parked", "--all")["items"]]
    assert states == ["replayed", "behind"]
    consumer.drain()
    assert typed.json("bus", "parked")["items"][0]["state"] == "parked"


def test_the_bus_may_be_a_redis(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(engine)
    with servers.redis_server() as url:
        bus = RedisBus(url)
        bus.publish_command(Channel.COMMANDS, message("m1"))
        bus.subscribe(COMMANDS)
        bus.close()
        monkeypatch.setenv("HOLDFAST_BUS", url)
        assert typed.json("bus", "groups")["items"] == [
            {**SERVICE, "lag": 1, "waiting": 0, "parked": 0, "readers": []}
        ]
        assert "relay/redis  nobody" in typed.ok("bus")
        with run_bus_duties(engine, KeepTimes(), url):
            assert eventually(
                lambda: set(typed.json("bus")["duties"]) == {"relay/redis", "retention"}
            )
            assert f"relay/redis  {socket.gethostname()}:{os.getpid()}" in typed.ok("bus")
        assert typed.json("bus")["duties"] == {}


def test_a_redis_that_is_away_is_told_with_the_variable_that_names_it(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.start()
    away = "redis://:hush@127.0.0.1:1"
    monkeypatch.setenv("HOLDFAST_BUS", away)
    for asked in (("bus",), ("bus", "groups"), ("bus", "tail")):
        said = typed(*asked)
        assert said.code == 5
        assert "Connection refused" in said.err
        assert "HOLDFAST_BUS is redis://:…@127.0.0.1:1: start that server" in said.err
    told = typed("bus", "--json")
    assert (told.code, json.loads(told.out)["error"]["code"]) == (5, "bus_unreachable")


def test_a_redis_that_is_away_keeps_nobody_from_starting_nor_from_hearing_the_store(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = create(engine)
    cancel = replace(message("m1", kind="task.cancel"), run_id=None, task_id=task, payload={})
    with run_bus_duties(engine, KeepTimes(), "redis://127.0.0.1:1", consume_commands=True):
        assert eventually(lambda: listed(typed) == HEARD)
        monkeypatch.setattr("sys.stdin", io.StringIO(write_envelope(cancel)))
        typed.ok("bus", "publish", "workflow.commands")
        assert eventually(lambda: engine.tasks.get(task).status == "cancelled")


def test_a_relay_that_never_runs_again_is_forgotten(engine: Engine, typed: Typed) -> None:
    forget = ("bus", "forget", "workflow.events")
    with servers.redis_server() as url:
        bus = RedisBus(url)
        relay = Relay(engine, bus)
        relay.drain()
        assert "relay/redis runs" in typed.refused(2, *forget, "relay/redis")
        relay.close()
        bus.close()
    assert "relay/redis  nobody" in typed.ok("bus")
    assert "there is relay/redis" in typed.refused(2, *forget, "relay/other")
    typed.ok(*forget, "relay/redis")
    assert typed.json("bus")["relays"] == []
