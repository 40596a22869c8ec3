"""What the statements of a bus leave alone: other groups, channels, handlers and messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.handler import Handler
from holdfast.bus.inbox import Inbox
from holdfast.bus.parked_messages import Parked
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import NewTask
from holdfast.store.database import Row, Transaction
from tests.contract.bus.worlds import COMMANDS, RUNS, World, message, share, take_all
from tests.contract.raw_store import raw

OTHER_GROUP = replace(COMMANDS, group="audit")
OTHER_CHANNEL = Subscription(channel=Channel.RESULTS, group="service")
ALL = (COMMANDS, OTHER_GROUP, OTHER_CHANNEL)
RETRY = RetryPolicy(max_attempts=2, backoff=10.0)


def publish(world: World, *names: str) -> None:
    for name in names:
        world.bus.publish_command(Channel.COMMANDS, message(name))
        world.bus.publish_event(Channel.RESULTS, message(name))


def take(world: World, subscription: Subscription) -> list[str]:
    return take_all(world.bus, share(subscription=subscription))


def test_a_group_is_rewound_alone(sql: World) -> None:
    publish(sql, "m1", "m2")
    for each in ALL:
        assert take(sql, each) == ["m1", "m2"]
    sql.bus.rewind(COMMANDS, 0)
    assert [take(sql, each) for each in ALL] == [["m1", "m2"], [], []]


def test_a_group_is_forgotten_alone(sql: World) -> None:
    publish(sql, "m1")
    for each in ALL:
        take(sql, each)
    sql.bus.forget(COMMANDS)
    assert [take(sql, each) for each in ALL] == [["m1"], [], []]


def test_a_group_is_acknowledged_for_alone(sql: World) -> None:
    for each in ALL:
        sql.bus.subscribe(each)
    publish(sql, "m1")
    assert [take(sql, each) for each in ALL] == [["m1"], ["m1"], ["m1"]]


def test_a_channel_is_trimmed_alone_of_what_is_old_enough(sql: World) -> None:
    publish(sql, "m1")
    moment = sql.clock.now() + 1
    sql.clock.advance(1)
    publish(sql, "m2")
    for each in (COMMANDS, OTHER_GROUP):
        assert take(sql, each) == ["m1", "m2"]
    sql.bus.subscribe(OTHER_CHANNEL)
    assert sql.bus.trim(Channel.COMMANDS, before=moment) == 1
    assert sql.bus.trim(Channel.COMMANDS, before=sql.clock.now() + 1) == 1
    assert take(sql, OTHER_CHANNEL) == ["m1", "m2"]


@pytest.mark.parametrize(("channel", "trimmed"), [(Channel.COMMANDS, 0), (Channel.RESULTS, 1)])
def test_nothing_is_trimmed_while_something_may_come_late(
    sql: World, channel: Channel, trimmed: int
) -> None:
    publish(sql, "m1")
    assert [take(sql, each) for each in (COMMANDS, OTHER_CHANNEL)] == [["m1"], ["m1"]]
    with raw(sql.engine.settings.url) as run:
        run(
            "UPDATE holdfast_position SET holes = '[[1, 1, 9]]' WHERE channel = ?",
            Channel.COMMANDS.value,
        )
    assert sql.bus.trim(channel, before=sql.clock.now() + 1) == trimmed


class Desk:
    """Two handlers that fail on the messages named for them."""

    def __init__(self, world: World) -> None:
        self.world, self.parked = world, Parked(world.engine)
        self.broken: set[tuple[str, str]] = set()
        self.done: list[tuple[str, str]] = []
        handlers = [Handler(name=name, handle=self._handle(name)) for name in ("pay", "mail")]
        options = ConsumerOptions(name="service-1", retry=RETRY)
        self.consumer = Consumer(world.engine, world.bus, COMMANDS, handlers, options)
        self.inbox = Inbox(world.engine, COMMANDS, handlers, RETRY)

    def _handle(self, name: str) -> Any:  # noqa: ANN401 - a handler's function
        def handle(envelope: Envelope, _: object) -> None:
            if (name, envelope.message_id) in self.broken:
                raise ZeroDivisionError
            self.done.append((name, envelope.message_id))

        return handle

    def send(self, *names: str, run: str = RUNS[0]) -> None:
        self.world.bus.publish_command(Channel.COMMANDS, *(message(each, run) for each in names))
        self.consumer.drain()

    @property
    def waiting(self) -> list[tuple[str, str, int]]:
        return [
            (each.handler.removeprefix("service/"), each.message_id, each.tries)
            for each in self.parked.list(parked=False)
        ]


@pytest.fixture
def desk(sql: World) -> Any:  # noqa: ANN401 - a desk
    made = Desk(sql)
    yield made
    made.consumer.close()


def test_a_message_that_was_done_before_does_not_wait_behind_one_that_failed(desk: Desk) -> None:
    desk.send("m0")
    desk.broken = {("pay", "m1")}
    desk.send("m1")
    desk.world.bus.rewind(COMMANDS, 0)
    desk.send("m2")
    assert desk.waiting == [("pay", "m1", 1), ("pay", "m2", 0)]
    assert desk.done == [(name, "m0") for name in ("pay", "mail")] + [
        ("mail", "m1"),
        ("mail", "m2"),
    ]


def test_a_message_that_one_handler_has_done_waits_for_the_other_all_the_same(desk: Desk) -> None:
    desk.broken = {("pay", "m1"), ("mail", "m1")}
    desk.send("m1")
    desk.broken = {("pay", "m1")}
    desk.world.clock.advance(10)
    desk.consumer.drain()
    assert desk.waiting == [("pay", "m1", 2)]
    assert desk.done == [("mail", "m1")]


def test_a_failure_counts_for_its_own_message_and_handler_alone(desk: Desk) -> None:
    desk.broken = {("pay", "m1"), ("mail", "m1"), ("pay", "n1")}
    desk.send("m1")
    desk.send("n1", run=RUNS[1])
    assert desk.world.engine.database.view(_due) == []
    desk.world.clock.advance(10)
    (row, *_) = desk.world.engine.database.view(_due)
    desk.inbox._retry_delivery(row)  # noqa: SLF001 - in two hands at once
    desk.inbox._retry_delivery(row)  # noqa: SLF001
    counts = {(handler, name): tries for handler, name, tries in desk.waiting}
    assert counts.pop((row["handler"].removeprefix("service/"), row["message_id"])) == 2
    assert set(counts.values()) == {1}


def test_only_a_message_parked_under_both_its_names_is_replayed_or_dropped(desk: Desk) -> None:
    desk.broken = {("pay", "m1"), ("mail", "m1"), ("pay", "n1")}
    desk.send("m1")
    desk.send("n1", run=RUNS[1])
    desk.world.clock.advance(10)
    assert desk.parked.drop("service/pay", "m1").reason is Refusal.NOT_FOUND
    assert desk.parked.replay("service/pay", "m1").reason is Refusal.NOT_FOUND
    desk.consumer.drain()
    parked = {("pay", "m1", 2), ("mail", "m1", 2), ("pay", "n1", 2)}
    assert set(desk.waiting) == parked
    assert desk.parked.replay("service/pay", "m1").ok
    assert set(desk.waiting) == parked ^ {("pay", "m1", 2), ("pay", "m1", 0)}
    assert desk.parked.drop("service/mail", "m1").ok
    assert set(desk.waiting) == {("pay", "m1", 0), ("pay", "n1", 2)}
    assert desk.parked.drop("service/other", "n1").reason is Refusal.NOT_FOUND
    assert desk.parked.drop("service/pay", "m9").reason is Refusal.NOT_FOUND


def test_a_message_that_a_handler_has_done_is_not_noted_as_dropped(desk: Desk) -> None:
    desk.send("m1")
    named = {"handler": "service/pay", "message_id": "m1", "run_id": None, "trace_id": "12" * 16}
    desk.world.engine.database.transact(lambda tx: tx.run("note_dropped", **named))
    with raw(desk.world.engine.settings.url) as run:
        kept = run("SELECT dropped FROM holdfast_processed_message WHERE handler = 'service/pay'")
    assert [bool(row["dropped"]) for row in kept] == [False]


def test_a_trace_stays_as_it_was_given_first(sql: World) -> None:
    made = sql.engine.tasks.create(NewTask(title="t", trace=message("m1").trace))
    other = (made.id, "12" * 16, "m2", "m2")
    sql.engine.database.transact(lambda tx: tx.run("insert_traces", rows=[other]))
    with raw(sql.engine.settings.url) as run:
        kept = run("SELECT * FROM holdfast_trace WHERE entity = ?", made.id)
    assert [(row["causation_id"], row["correlation_id"]) for row in kept] == [("m1", "m1")]


def _due(tx: Transaction) -> list[Row]:
    return tx.read(
        "due_deliveries",
        channel=COMMANDS.channel.value,
        handlers=[f"service/{each}" for each in ("pay", "mail")],
        slots=[str(slot) for slot in range(32)],
        count=10,
    )
