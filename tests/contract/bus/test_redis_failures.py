"""A Redis that dies, forgets, or holds what nobody can read: it costs time, and nothing else."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast.bus.consumer import Consumer
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.handler import Handler
from holdfast.bus.parked_messages import Parked
from holdfast.bus.relay import Relay, RelayOptions
from holdfast.engine.engine import Engine
from holdfast.errors import BusUnreachable
from tests import servers
from tests.contract.bus.worlds import COMMANDS, World, message, names, share, take_all
from tests.contract.task_states import start
from tests.engines import healthy

EVENTS = Subscription(channel=Channel.EVENTS, group="audit")
STEPS = ("plan", "work", "review")


@pytest.fixture
def redis_world(opened_worlds: dict[str, World]) -> Any:  # noqa: ANN401 - a world
    world = opened_worlds["redis beside sqlite"]
    yield world
    world.clean()


def test_an_unreadable_message_is_parked_and_does_not_hold_up_the_others(
    redis_world: World,
) -> None:
    stream = f"{{{redis_world.prefix}}}:{Channel.COMMANDS}:0"
    for fields in ({"envelope": b"\xff{"}, {"other": "field"}, {"envelope": '{"message_id": "m"}'}):
        redis_world.client.xadd(stream, fields)
    redis_world.bus.publish_command(Channel.COMMANDS, message("m1"))
    done: list[str] = []
    pay = Handler(name="pay", handle=lambda envelope, _: done.append(envelope.message_id))
    consumer = Consumer(redis_world.engine, redis_world.bus, COMMANDS, [pay])
    consumer.drain()
    consumer.close()
    parked = Parked(redis_world.engine).list()
    assert done == ["m1"]
    assert [each.handler for each in parked] == ["service/unreadable"] * 3
    assert [each.envelope.payload["text"] for each in parked] == ["?{", "", '{"message_id": "m"}']
    assert "trace_id: is missing" in str(parked[2].error)
    assert Parked(redis_world.engine).drop(parked[0].handler, parked[0].message_id).ok


def test_a_pending_message_that_somebody_deleted_is_let_go(redis_world: World) -> None:
    redis_world.bus.publish_command(Channel.COMMANDS, message("m1"), message("m2"))
    assert names(redis_world.bus.fetch(share(), count=10)) == ["m1", "m2"]
    for partition in range(redis_world.bus.partitions):
        stream = f"{{{redis_world.prefix}}}:{Channel.COMMANDS}:{partition}"
        for entry, _ in redis_world.client.xrange(stream, count=1):
            redis_world.client.xdel(stream, entry)
    (again,) = redis_world.bus.recover(share(consumer="service-2"), count=10)
    assert names([again]) == ["m2"]
    assert redis_world.bus.acknowledge(again)
    assert redis_world.bus.recover(share(consumer="service-2"), count=10) == []
    assert redis_world.bus.lag(COMMANDS) == 0


def test_a_message_that_is_pending_behind_deleted_ones_is_taken_up(redis_world: World) -> None:
    redis_world.bus.publish_command(Channel.COMMANDS, *(message(f"m{each}") for each in range(5)))
    assert len(names(redis_world.bus.fetch(share(), count=10))) == 5
    for partition in range(redis_world.bus.partitions):
        stream = f"{{{redis_world.prefix}}}:{Channel.COMMANDS}:{partition}"
        for entry, _ in redis_world.client.xrange(stream, count=4):
            redis_world.client.xdel(stream, entry)
    assert names(redis_world.bus.recover(share(consumer="service-2"), count=1)) == ["m4"]


def test_a_connection_that_was_cut_is_made_again(redis_world: World) -> None:
    redis_world.bus.subscribe(COMMANDS)
    redis_world.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    redis_world.bus.publish_command(Channel.COMMANDS, message("m1"))
    redis_world.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert take_all(redis_world.bus, share()) == ["m1"]


def test_a_redis_that_is_away_is_told_as_that(tmp_path: Path) -> None:
    bus = RedisBus(f"unix://{tmp_path}/nobody.sock")
    assert not bus.health().ok
    assert "; is the server running" in bus.health().detail
    assert ".;" not in bus.health().detail
    with pytest.raises(BusUnreachable, match="is the server running"):
        bus.publish_command(Channel.COMMANDS, message("m1"))
    bus.close()


def test_a_refusal_of_redis_is_told_and_raises_no_error_of_its_client(redis_world: World) -> None:
    for partition in range(redis_world.bus.partitions):
        redis_world.client.set(f"{{{redis_world.prefix}}}:{Channel.COMMANDS}:{partition}", "text")
    with pytest.raises(BusUnreachable, match=r"Redis refuses: .*WRONGTYPE"):
        redis_world.bus.publish_command(Channel.COMMANDS, message("m1"))
    with pytest.raises(BusUnreachable, match=r"Redis refuses: .*WRONGTYPE"):
        redis_world.bus.groups(Channel.COMMANDS)


class Audit:
    """Counts the events it is given, and lets a test wait until it has them all."""

    def __init__(self) -> None:
        self.seen: list[Envelope] = []
        self._changed = threading.Condition()

    def note(self, envelope: Envelope, _: object) -> None:
        with self._changed:
            self.seen.append(envelope)
            self._changed.notify_all()

    def has(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.seen) >= count, 60)


def test_redis_killed_and_started_empty_in_the_middle_loses_no_event(
    sqlite_url: str, tmp_path: Path
) -> None:
    audit, home = Audit(), tmp_path / "redis"
    home.mkdir()
    engine = Engine(sqlite_url).start()
    with healthy(engine):
        with servers.redis_server(home) as url:
            bus = RedisBus(url)
            relay = Relay(engine, bus, RelayOptions(upkeep=0.05))
            consumer = Consumer(engine, bus, EVENTS, [Handler(name="note", handle=audit.note)])
            relay.start()
            consumer.start()
            runs = [start(engine)]
            assert audit.has(4)
            servers.kill_redis(url)
        runs.append(start(engine))
        home.mkdir(exist_ok=True)
        with servers.redis_server(home):
            runs[0].finish(*STEPS)
            runs[1].finish(*STEPS)
            histories = {run.id: engine.runs.events(run.id) for run in runs}
            assert audit.has(sum(map(len, histories.values())))
            relay.close()
            consumer.close()
        bus.close()
    counts = Counter(each.message_id for each in audit.seen)
    assert set(counts.values()) == {1}
    for run_id, history in histories.items():
        seen = [each.message_id for each in audit.seen if each.run_id == run_id]
        assert seen == [f"{event.task_id or event.run_id}.{event.version}" for event in history]
