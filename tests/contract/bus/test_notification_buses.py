"""Notification buses: heard at once where they are sent, soon elsewhere, and kept by nobody."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
import redis

from holdfast.bus.notification_bus import MOST_BYTES, NotificationBus, Topic
from holdfast.bus.notification_buses.memory import MemoryNotificationBus
from holdfast.bus.notification_buses.postgresql import PostgresqlNotificationBus
from holdfast.bus.notification_buses.redis import RedisNotificationBus
from holdfast.errors import InvalidInput
from tests.contract.bus.worlds import World

Open = Callable[[], NotificationBus]


class Ear:
    """Keeps what it is told, and lets a test wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.heard: list[tuple[str, Any]] = []

    def __call__(self, topic: str, message: object) -> None:
        with self._changed:
            self.heard.append((topic, message))
            self._changed.notify_all()

    def hears(self, *messages: object) -> bool:
        wanted = [("monitoring", message) for message in messages]
        with self._changed:
            return self._changed.wait_for(lambda: self.heard == wanted, 20)


@pytest.fixture(params=["memory", "postgresql", "redis"])
def open_bus(
    request: pytest.FixtureRequest, opened_worlds: dict[str, World], redis_url: str
) -> Iterator[Open]:
    """Opens buses that stand for processes which share one way between them."""
    prefix = f"test-{uuid.uuid4().hex}"
    with ExitStack() as stack:

        def make() -> NotificationBus:
            if request.param == "memory":
                return MemoryNotificationBus()
            if request.param == "redis":
                return RedisNotificationBus(redis_url, prefix=prefix)
            return PostgresqlNotificationBus(opened_worlds["postgresql"].engine)

        def start() -> NotificationBus:
            bus = stack.enter_context(make())
            assert bus.listening.wait(20)
            return bus

        yield start


def test_a_notification_is_heard_in_its_own_process_before_publish_returns(open_bus: Open) -> None:
    bus, ear, other = open_bus(), Ear(), Ear()
    bus.subscribe(Topic.MONITORING, ear)
    bus.subscribe(Topic.LOGS, other)
    assert bus.publish(Topic.MONITORING, {"runs": [1, "ü"]})
    assert ear.heard == [("monitoring", {"runs": [1, "ü"]})]
    assert other.heard == []


def test_a_subscriber_that_unsubscribed_or_failed_does_not_hold_up_the_others(
    open_bus: Open, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    bus, ear, gone = open_bus(), Ear(), Ear()
    unsubscribe = bus.subscribe(Topic.MONITORING, gone)
    bus.subscribe(Topic.MONITORING, fail)
    bus.subscribe(Topic.MONITORING, ear)
    unsubscribe()
    unsubscribe()
    bus.publish(Topic.MONITORING, 1)
    assert (ear.heard, gone.heard) == ([("monitoring", 1)], [])
    assert "ZeroDivisionError" in caplog.text


def test_a_message_that_is_no_small_json_is_refused_and_told_to_nobody(open_bus: Open) -> None:
    bus, ear = open_bus(), Ear()
    bus.subscribe(Topic.MONITORING, ear)
    for message in (object(), "x" * MOST_BYTES):
        with pytest.raises(InvalidInput, match=r"^message"):
            bus.publish(Topic.MONITORING, message)
    with pytest.raises(InvalidInput, match=r"^topic"):
        bus.publish("two words", 1)
    assert ear.heard == []


@pytest.mark.parametrize("open_bus", ["postgresql", "redis"], indirect=True)
def test_a_notification_reaches_other_processes_once(open_bus: Open) -> None:
    first, second, ear, own = open_bus(), open_bus(), Ear(), Ear()
    second.subscribe(Topic.MONITORING, ear)
    first.subscribe(Topic.MONITORING, own)
    first.publish(Topic.MONITORING, "é" * (MOST_BYTES // 2 - 2))
    first.publish(Topic.LOGS, "unheard")
    first.publish(Topic.MONITORING, {"b": None})
    assert ear.hears("é" * (MOST_BYTES // 2 - 2), {"b": None})
    assert len(own.heard) == 2


@pytest.mark.parametrize("open_bus", ["postgresql", "redis"], indirect=True)
def test_a_listener_that_was_cut_off_listens_again(
    open_bus: Open, opened_worlds: dict[str, World], redis_url: str
) -> None:
    first, second, ear = open_bus(), open_bus(), Ear()
    second.subscribe(Topic.MONITORING, ear)
    second.listening.clear()
    if isinstance(first, RedisNotificationBus):
        with redis.Redis.from_url(redis_url) as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    else:
        with psycopg.connect(
            opened_worlds["postgresql"].engine.settings.url, autocommit=True
        ) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query = 'LISTEN holdfast_notes'"
            )
    assert second.listening.wait(20)
    first.publish(Topic.MONITORING, 2)
    assert ear.hears(2)


def test_a_bus_without_a_server_goes_on_in_its_own_process() -> None:
    bus, ear = RedisNotificationBus("redis://127.0.0.1:1"), Ear()
    bus.subscribe(Topic.MONITORING, ear)
    with bus:
        assert not bus.publish(Topic.MONITORING, 1)
    assert ear.heard == [("monitoring", 1)]


def test_malformed_messages_that_others_send_there_are_ignored(redis_url: str) -> None:
    prefix = f"test-{uuid.uuid4().hex}"
    ear = Ear()
    with (
        RedisNotificationBus(redis_url, prefix=prefix) as bus,
        redis.Redis.from_url(redis_url) as other,
    ):
        bus.subscribe(Topic.MONITORING, ear)
        assert bus.listening.wait(20)
        for text in ("{", "7", "x monitoring {", "x monitoring 5"):
            other.publish(f"{prefix}:notes", text)
        assert ear.hears(5)


def test_a_store_in_a_file_has_no_notifications_for_others(
    opened_worlds: dict[str, World],
) -> None:
    with pytest.raises(InvalidInput, match=r"RedisNotificationBus"):
        PostgresqlNotificationBus(opened_worlds["sqlite"].engine)
