"""Retention: what nobody can be given again goes after a while, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.handler import Handler
from holdfast.bus.relay import Relay
from holdfast.bus.retention import WEEK, Retention, RetentionOptions
from holdfast.errors import NotFound
from tests.contract.bus.worlds import COMMANDS, World, message, share, take_all
from tests.contract.raw_store import raw
from tests.contract.task_states import create, start

LATE = Subscription(channel=Channel.COMMANDS, group="late")
EVENTS = Subscription(channel=Channel.EVENTS, group="audit", from_now=True)


class Archive:
    def __init__(self, world: World) -> None:
        self.world, self.engine, self.bus = world, world.engine, world.bus
        self.done: list[str] = []
        self.retention = Retention(self.engine, [self.bus], RetentionOptions(count=2))

    def consumer(self, subscription: Subscription = COMMANDS) -> Consumer:
        note = Handler(name="note", handle=lambda each, _: self.done.append(each.message_id))
        options = ConsumerOptions(name="service-1")
        return Consumer(self.engine, self.bus, subscription, [note], options)

    def publish(self, *names: str) -> None:
        self.bus.publish_command(Channel.COMMANDS, *(message(each) for each in names))

    def pass_a_week(self) -> None:
        self.world.clock.advance(WEEK + 1)

    @property
    def notes(self) -> list[str]:
        with raw(self.engine.settings.url) as run:
            rows = run("SELECT message_id FROM holdfast_processed_message ORDER BY message_id")
        return [row["message_id"] for row in rows]


@pytest.fixture
def archive(sql: World) -> Iterator[Archive]:
    made = Archive(sql)
    yield made
    made.retention.close()


def test_notes_and_messages_go_after_a_week(archive: Archive) -> None:
    consumer = archive.consumer()
    archive.publish("m1", "m2", "m3")
    consumer.drain()
    assert archive.retention.drain() == 0
    archive.pass_a_week()
    archive.publish("m4")
    consumer.drain()
    assert archive.notes == ["m1", "m2", "m3", "m4"]
    assert archive.retention.drain() == 6
    assert archive.notes == ["m4"]
    assert [each.message_id for each in archive.bus.latest(Channel.COMMANDS, 9)] == ["m4"]
    consumer.close()


def test_a_message_that_a_group_has_not_acknowledged_is_not_removed(archive: Archive) -> None:
    consumer = archive.consumer()
    archive.bus.subscribe(LATE)
    archive.publish("m1")
    consumer.drain()
    archive.pass_a_week()
    assert archive.retention.drain() == 0
    assert archive.notes == ["m1"]
    assert take_all(archive.bus, share(subscription=LATE)) == ["m1"]
    archive.world.clock.advance(3_601)
    assert archive.retention.drain() == 2
    assert archive.notes == []
    consumer.close()


def test_a_note_stays_while_an_event_may_still_be_given(archive: Archive) -> None:
    archive.bus.subscribe(EVENTS)
    consumer = archive.consumer()
    create(archive.engine)
    archive.publish("m1")
    consumer.drain()
    archive.pass_a_week()
    assert archive.retention.step() == 1
    assert archive.notes == ["m1"]
    assert len(take_all(archive.bus, share(subscription=EVENTS))) == 1
    archive.world.clock.advance(3_601)
    assert archive.retention.step() == 1
    assert archive.notes == []
    consumer.close()


def test_one_of_two_processes_removes_old_messages(archive: Archive) -> None:
    consumer = archive.consumer()
    archive.publish("m1")
    consumer.drain()
    second = Retention(archive.engine, [archive.bus])
    assert archive.retention.step() == 0
    archive.pass_a_week()
    archive.retention.step()
    assert second.step() == 0
    assert archive.notes == []
    second.close()
    consumer.close()


def test_an_event_that_redis_still_keeps_for_a_group_keeps_its_notes(redis_store: World) -> None:
    archive = Archive(redis_store)
    assert isinstance(archive.bus, RedisBus)
    relay, events = Relay(archive.engine, archive.bus), archive.consumer(EVENTS)
    create(archive.engine)
    relay.drain()
    events.drain()
    done = len(archive.notes)
    assert done > 0
    archive.pass_a_week()
    # It was not told yet that all is acknowledged, and would publish it again after a loss.
    assert archive.retention.drain() >= 0
    assert len(archive.notes) == done
    relay.step()
    archive.world.clock.advance(3_601)
    archive.retention.drain()
    assert archive.notes == []
    _close(relay, events, archive.retention)


def test_a_redis_that_nobody_reads_keeps_nothing(redis_store: World) -> None:
    assert isinstance(redis_store.bus, RedisBus)
    engine, relay = redis_store.engine, Relay(redis_store.engine, redis_store.bus)
    retention = Retention(engine, [redis_store.bus], RetentionOptions(runs=WEEK))
    relay.drain()
    run = start(engine)
    assert engine.runs.cancel(run.id).ok
    redis_store.clock.advance(WEEK + 1)
    retention.drain()
    assert run.status == "cancelled", "Redis was not told of it"
    relay.drain()
    redis_store.clock.advance(3_601)
    retention.drain()
    with pytest.raises(NotFound):
        engine.runs.get(run.id)
    _close(relay, retention)


def test_runs_and_tasks_go_when_they_were_kept_long_enough(archive: Archive) -> None:
    options = RetentionOptions(runs=WEEK / 2)
    retention = Retention(archive.engine, [archive.bus], options)
    archive.retention.close()
    retention.drain()
    run, task, kept = start(archive.engine), create(archive.engine), create(archive.engine)
    archive.engine.runs.cancel(run.id)
    archive.engine.tasks.cancel(task)
    retention.drain()
    assert run.status == "cancelled"
    archive.pass_a_week()
    assert retention.drain() >= 2
    for gone in (lambda: archive.engine.runs.get(run.id), lambda: archive.engine.tasks.get(task)):
        with pytest.raises(NotFound):
            gone()
    assert archive.engine.tasks.get(kept).status == "queued"
    retention.close()


def _close(*opened: Any) -> None:
    for each in opened:
        each.close()
