"""Consumers on every bus: each effect once, in order, and a failing message in nobody's way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import apsw
import psycopg
import pytest

from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.consumer_groups import forget, list_external_groups
from holdfast.bus.envelope import Envelope, write_envelope
from holdfast.bus.execution_bus import Channel, MessageBatch
from holdfast.bus.handler import Handler
from holdfast.bus.parked_messages import Parked
from holdfast.errors import BusUnreachable, InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from tests.contract.bus.worlds import COMMANDS, PARTITIONS, RUNS, World, message, redis_world, share
from tests.contract.raw_store import raw

# apsw's or psycopg's: both can execute.
Connection = Any
RETRY = RetryPolicy(max_attempts=3, backoff=10.0, backoff_max=20.0)
OPTIONS = ConsumerOptions(name="service-1", retry=RETRY)
KEPT = """
INSERT INTO holdfast_delivery (handler, message_id, channel, about, slot, envelope, tries)
VALUES (?, 'm9', ?, 'r', 0, ?, 1)
"""


def write_effect(envelope: Envelope, connection: Connection, handler: str = "pay") -> None:
    mark = "?" if isinstance(connection, apsw.Connection) else "%s"
    text = f"INSERT INTO effect (message, handler) VALUES ({mark}, {mark})"  # noqa: S608
    connection.execute(text, (envelope.message_id, handler))


@dataclass
class Shop:
    """Pays for each message; those named fail after their effect until they are mended."""

    world: World
    broken: set[str] = field(default_factory=set)
    tried: list[str] = field(default_factory=list)

    def pay(self, envelope: Envelope, connection: Connection) -> None:
        self.tried.append(envelope.message_id)
        write_effect(envelope, connection)
        if envelope.message_id in self.broken:
            raise ZeroDivisionError(envelope.message_id)

    def consumer(self, *more: Handler, options: ConsumerOptions = OPTIONS) -> Consumer:
        handlers = [Handler(name="pay", handle=self.pay), *more]
        return Consumer(self.world.engine, self.world.bus, COMMANDS, handlers, options)

    def publish(self, *names: str, run: str = RUNS[0]) -> None:
        told = (message(each, run) for each in names)
        self.world.bus.publish_command(Channel.COMMANDS, *told)

    @property
    def paid(self) -> list[str]:
        return self.effects("pay")

    def effects(self, handler: str) -> list[str]:
        with raw(self.world.engine.settings.url) as run:
            rows = run("SELECT message FROM effect WHERE handler = ? ORDER BY place", handler)
        return [row["message"] for row in rows]


@pytest.fixture
def shop(world: World) -> Shop:
    with raw(world.engine.settings.url) as run:
        place = "place bigint GENERATED ALWAYS AS IDENTITY" if run.postgresql else "place INTEGER"
        run("DROP TABLE IF EXISTS effect")
        run(f"CREATE TABLE effect ({place} PRIMARY KEY, message text, handler text)")
    return Shop(world)


@pytest.fixture
def parked(world: World) -> Parked:
    return Parked(world.engine)


def test_failed_messages_go_with_their_forgotten_group_and_no_others_do(
    shop: Shop, parked: Parked
) -> None:
    shop.broken = {"m1"}
    shop.publish("m1", "m2")
    consumer = shop.consumer()
    consumer.drain()
    consumer.close()
    others = {("others/pay", "workflow.commands"), ("service/pay", "agent.results")}
    with raw(shop.world.engine.settings.url) as run:
        for handler, channel in others:
            run(KEPT, handler, channel, write_envelope(message("m9")))
    assert len(parked.list(parked=False)) == 4
    forget(shop.world.engine, shop.world.bus, COMMANDS)
    assert {(each.handler, each.channel) for each in parked.list(parked=False)} == others


def test_a_message_published_twice_has_its_effect_once(shop: Shop) -> None:
    shop.publish("m1", "m1", "m2")
    consumer = shop.consumer()
    consumer.drain()
    shop.publish("m1", "m3")
    consumer.drain()
    consumer.close()
    assert shop.paid == ["m1", "m2", "m3"]


def test_a_consumer_lost_between_effect_and_acknowledgement_repeats_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.publish("m1", "m2")
    consumer = shop.consumer()

    def die(_: MessageBatch) -> bool:
        raise BusUnreachable

    with monkeypatch.context() as patched:
        patched.setattr(shop.world.bus, "acknowledge", die)
        with pytest.raises(BusUnreachable):
            consumer.step()
    assert shop.paid == ["m1", "m2"]
    assert shop.world.bus.lag(COMMANDS) == 2
    shop.publish("m3")
    consumer.drain()
    consumer.close()
    assert shop.paid == ["m1", "m2", "m3"]
    assert shop.world.bus.lag(COMMANDS) == 0


def test_a_failing_message_holds_back_its_own_run_alone(shop: Shop, parked: Parked) -> None:
    shop.broken = {"m2"}
    shop.publish("m1", "m2", "m3")
    shop.publish("n1", "n2", run=RUNS[1])
    consumer = shop.consumer()
    consumer.drain()
    assert set(shop.paid) == {"m1", "n1", "n2"}
    assert shop.world.bus.lag(COMMANDS) == 0
    shop.publish("m4")
    shop.publish("n3", run=RUNS[1])
    consumer.drain()
    assert set(shop.paid) == {"m1", "n1", "n2", "n3"}
    waiting = parked.list(parked=False)
    assert [(each.message_id, each.tries) for each in waiting] == [("m2", 1), ("m3", 0), ("m4", 0)]
    assert waiting[0].error == "ZeroDivisionError: m2"
    shop.broken.clear()
    assert shop.tried.count("m2") == 1
    shop.world.clock.advance(10)
    consumer.drain()
    consumer.close()
    assert [each for each in shop.paid if each.startswith("m")] == ["m1", "m2", "m3", "m4"]
    assert parked.list(parked=False) == []


def test_a_message_that_fails_too_often_is_parked_and_goes_on_when_replayed(
    shop: Shop, parked: Parked
) -> None:
    shop.broken = {"m1"}
    shop.publish("m1", "m2")
    consumer = shop.consumer()
    for _ in range(5):
        consumer.drain()
        shop.world.clock.advance(20)
    assert shop.tried.count("m1") == 3
    (seen,) = parked.list()
    assert (seen.handler, seen.message_id, seen.tries) == ("service/pay", "m1", 3)
    assert seen.envelope.payload == "m1"
    assert parked.replay("service/pay", "m2").reason is Refusal.NOT_FOUND
    assert parked.replay("service/other", "m1").reason is Refusal.NOT_FOUND
    shop.broken.clear()
    assert parked.replay("service/pay", "m1").ok
    assert parked.replay("service/pay", "m1").reason is Refusal.NOT_FOUND
    consumer.drain()
    consumer.close()
    assert shop.paid == ["m1", "m2"]


def test_a_message_that_is_dropped_stays_dropped_and_lets_the_others_go_on(
    shop: Shop, parked: Parked
) -> None:
    shop.broken = {"m1"}
    shop.publish("m1", "m2")
    consumer = shop.consumer(
        options=ConsumerOptions(name="service-1", retry=RetryPolicy(max_attempts=1))
    )
    consumer.drain()
    assert parked.drop("service/pay", "m2").reason is Refusal.NOT_FOUND
    assert parked.drop("service/pay", "m1").ok
    assert parked.drop("service/pay", "m1").reason is Refusal.NOT_FOUND
    shop.broken.clear()
    consumer.drain()
    shop.world.bus.rewind(COMMANDS, 0)
    consumer.drain()
    consumer.close()
    assert shop.paid == ["m2"]


def test_two_handlers_of_one_message_are_independent(shop: Shop) -> None:
    def mail(envelope: Envelope, connection: Connection) -> None:
        write_effect(envelope, connection, "mail")

    shop.broken = {"m1"}
    shop.publish("m1", "m2")
    only = frozenset({"run.start"})
    consumer = shop.consumer(Handler(name="mail", handle=mail, types=only))
    shop.world.bus.publish_command(Channel.COMMANDS, message("m3", kind="run.cancel"))
    consumer.drain()
    assert (shop.paid, shop.effects("mail")) == ([], ["m1", "m2"])
    shop.broken.clear()
    shop.world.clock.advance(10)
    consumer.drain()
    consumer.close()
    assert (shop.paid, shop.effects("mail")) == (["m1", "m2", "m3"], ["m1", "m2"])


def roll_back(connection: Connection) -> None:
    connection.execute("ROLLBACK")


def break_and_go_on(connection: Connection) -> None:
    with suppress(apsw.Error, psycopg.Error):
        connection.execute("SELECT nothing FROM nowhere")
    if isinstance(connection, apsw.Connection):
        # SQLite goes on after an error, and so may its handlers.
        roll_back(connection)


@pytest.mark.parametrize("spoil", [roll_back, break_and_go_on])
def test_a_message_whose_handler_broke_or_rolled_back_its_transaction_is_not_taken_for_done(
    shop: Shop, parked: Parked, spoil: Callable[[Connection], None]
) -> None:
    def be_odd(envelope: Envelope, connection: Connection) -> None:
        if envelope.message_id == "m2":
            spoil(connection)

    shop.publish("m1", "m2", "m3")
    shop.publish("n1", run=RUNS[1])
    consumer = shop.consumer(Handler(name="odd", handle=be_odd))
    consumer.drain()
    consumer.close()
    assert sorted(shop.paid) == ["m1", "m2", "m3", "n1"]
    waiting = parked.list(parked=False)
    assert [(each.handler, each.message_id) for each in waiting] == [
        ("service/odd", "m2"),
        ("service/odd", "m3"),
    ]


def test_two_handlers_of_one_name_are_refused(shop: Shop) -> None:
    for name in ("pay", "unreadable"):
        with pytest.raises(InvalidInput, match=r"^handlers: two"):
            shop.consumer(Handler(name=name, handle=shop.pay))


def test_partitions_are_shared_among_those_who_are_there(shop: Shop) -> None:
    first = shop.consumer()
    assert first.take_share() == (0, 1, 2, 3)
    second = shop.consumer(options=ConsumerOptions(name="service-2", retry=RETRY))
    assert second.take_share() == ()
    shop.world.clock.advance(2)
    assert first.take_share() == (0, 1)
    shop.world.clock.advance(2)
    assert second.take_share() == (2, 3)
    # The first is silent from now on.
    for _ in range(4):
        shop.world.clock.advance(2)
        second.step()
    assert second.take_share() == (0, 1, 2, 3)
    shop.publish("m1")
    second.drain()
    assert shop.paid == ["m1"]
    second.close()
    shop.world.clock.advance(2)
    assert first.take_share() == (0, 1, 2, 3)
    first.close()


def test_a_long_batch_costs_nobody_their_partitions(shop: Shop) -> None:
    def take_long(*_: object) -> None:
        shop.world.clock.advance(2)

    slow = Handler(name="slow", handle=take_long, steers=True)
    first = shop.consumer(slow)
    second = shop.consumer(options=ConsumerOptions(name="service-2", retry=RETRY))
    shop.publish("m1", "m2", "m3", "m4", "m5")
    assert first.step() == 5
    assert second.take_share() == ()
    first.close()
    second.close()


def test_two_consumers_of_one_name_never_share_a_partition(shop: Shop) -> None:
    first, second = shop.consumer(), shop.consumer()
    assert first.take_share() == (0, 1, 2, 3)
    assert second.take_share() == ()
    first.close()
    shop.world.clock.advance(2)
    assert second.take_share() == (0, 1, 2, 3)
    second.close()


def test_a_consumer_that_wakes_up_behind_its_successor_repeats_nothing(shop: Shop) -> None:
    shop.publish("m1", "m2")
    stale = shop.consumer()
    stale.take_share()
    batches = shop.world.bus.fetch(share(consumer="service-1"), count=10)
    shop.world.clock.advance(6)
    shop.broken = {"m1"}
    successor = shop.consumer(options=ConsumerOptions(name="service-2", retry=RETRY))
    successor.drain()
    for batch in batches:
        stale._inbox.handle_once(batch.envelopes)  # noqa: SLF001 - as it would have gone on
        shop.world.bus.acknowledge(batch)
    assert shop.paid == []
    shop.broken.clear()
    shop.world.clock.advance(10)
    successor.drain()
    assert shop.paid == ["m1", "m2"]
    stale.close()
    successor.close()


def test_a_message_in_two_hands_at_once_has_its_effect_once(shop: Shop) -> None:
    shop.publish("m1")
    other = shop.consumer(options=ConsumerOptions(name="service-2", retry=RETRY))
    racer = threading.Thread(target=lambda: other._inbox.handle_once([message("m1")]))  # noqa: SLF001

    def start_racer(envelope: Envelope, connection: Connection) -> None:
        shop.pay(envelope, connection)
        racer.start()
        with raw(shop.world.engine.settings.url) as run:
            waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
            while run.postgresql and not run(waiting):
                pass

    handlers = [Handler(name="pay", handle=start_racer)]
    first = Consumer(shop.world.engine, shop.world.bus, COMMANDS, handlers, OPTIONS)
    first.drain()
    racer.join()
    assert shop.paid == ["m1"]
    first.close()
    other.close()


def test_a_consumer_goes_on_by_itself_after_trouble(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, fetch = threading.Event(), shop.world.bus.fetch
    troubles = iter([BusUnreachable("away"), BusUnreachable("away")])

    def trouble(*given: Any, **named: Any) -> list[MessageBatch]:
        for each in troubles:
            raise each
        return fetch(*given, **named)

    monkeypatch.setattr(shop.world.bus, "fetch", trouble)
    tell = Handler(name="tell", handle=lambda *_: done.set())
    with shop.consumer(tell):
        shop.publish("m1")
        assert done.wait(20)
    assert shop.paid == ["m1"]


def test_the_same_group_under_two_prefixes_of_redis_is_two(
    redis_store: World, redis_url: str
) -> None:
    engine = redis_store.engine
    with redis_world(engine, redis_url) as second:
        first = Shop(redis_store).consumer()
        other = Shop(second).consumer(options=ConsumerOptions(name="service-2"))
        assert first.take_share() == other.take_share() == tuple(range(PARTITIONS))
        for world in (redis_store, second):
            assert list_external_groups(engine, world.bus, Channel.COMMANDS) == [COMMANDS.group]
        with raw(engine.settings.url) as run:
            run(KEPT, "service/pay", "workflow.commands", write_envelope(message("m9")))
        forget(engine, second.bus, COMMANDS)
        assert len(Parked(engine).list(parked=False)) == 1
        assert list_external_groups(engine, second.bus, Channel.COMMANDS) == []
        assert list_external_groups(engine, redis_store.bus, Channel.COMMANDS) == [COMMANDS.group]
        first.close()
        other.close()
