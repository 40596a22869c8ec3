"""The relay: every event reaches Redis in order, whoever dies and whatever Redis loses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.bus.consumer_groups import (
    forget,
    forget_relay,
    list_external_groups,
    list_relays,
    subscribe,
)
from holdfast.bus.envelope import Envelope, write_envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.relay import Outbox, Relay, RelayOptions
from holdfast.errors import StoreError
from holdfast.model.task import NewTask
from tests.contract.bus.worlds import COMMANDS, RUNS, World, message, share
from tests.contract.raw_store import raw
from tests.contract.task_states import create, start

AUDIT = Subscription(channel=Channel.EVENTS, group="audit")
MAIL = Subscription(channel=Channel.EVENTS, group="mail")


class Office:
    """A relay beside a Redis that has all of the past, and groups that are done with it."""

    def __init__(self, world: World) -> None:
        assert isinstance(world.bus, RedisBus)
        self.world, self.engine, self.bus = world, world.engine, world.bus
        self.relay = self.new_relay()
        self.relay.drain()
        for each in (AUDIT, MAIL):
            subscribe(world.engine, world.bus, each)
            self.handle_once(each)
        self.keep_up()

    def new_relay(self) -> Relay:
        return Relay(self.engine, self.bus)

    def keep_up(self) -> None:
        # More than the second that it takes: sums of fractions may fall short of one.
        self.world.clock.advance(1.1)
        self.relay.step()

    def handle_once(self, subscription: Subscription) -> list[Envelope]:
        found: list[Envelope] = []
        taken = share(subscription=subscription)
        while batches := self.bus.recover(taken, count=100) + self.bus.fetch(taken, count=100):
            for batch in batches:
                found += batch.envelopes
                assert self.bus.acknowledge(batch)
        return found

    def taken(self, subscription: Subscription) -> list[str]:
        return [each.message_id for each in self.handle_once(subscription)]

    @property
    def length(self) -> int:
        streams = [self.bus.stream(Channel.EVENTS, each) for each in range(self.bus.partitions)]
        assert self.world.client is not None
        return sum(int(str(self.world.client.xlen(each))) for each in streams)


@pytest.fixture
def office(redis_store: World) -> Iterator[Office]:
    made = Office(redis_store)
    yield made
    made.relay.close()


def test_every_event_reaches_every_group_in_the_order_of_its_run(office: Office) -> None:
    run = start(office.engine)
    run.finish("plan", "work", "review")
    assert office.relay.drain() > 0
    history = office.engine.runs.events(run.id)
    wanted = [f"{event.task_id or event.run_id}.{event.version}" for event in history]
    assert office.taken(AUDIT) == wanted
    found = office.handle_once(MAIL)
    assert [each.message_id for each in found] == wanted
    assert [each.type for each in found] == [event.type for event in history]


def test_a_relay_hears_of_every_commit_of_its_process_until_it_is_closed(office: Office) -> None:
    second = office.new_relay()
    heard = second._hinted  # noqa: SLF001 - what its thread waits for
    create(office.engine, enqueue=False)
    assert heard.is_set()
    second.close()
    heard.clear()
    create(office.engine, enqueue=False)
    assert not heard.is_set()


def test_an_event_that_was_published_but_not_marked_is_published_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(office.engine)

    def die(*_: object) -> bool:
        raise StoreError

    with monkeypatch.context() as patched:
        patched.setattr("holdfast.bus.relay.Outbox.mark_sent", die)
        with pytest.raises(StoreError):
            office.relay.step()
    run.finish("plan")
    office.world.clock.advance(4)
    successor = office.new_relay()
    successor.drain()
    successor.close()
    found = office.taken(AUDIT)
    first = [each for place, each in enumerate(found) if each not in found[:place]]
    history = office.engine.runs.events(run.id)
    assert len(found) > len(first)
    assert first == [f"{event.task_id or event.run_id}.{event.version}" for event in history]


def test_the_position_of_a_relay_is_noted_now_and_then_and_when_it_ends(office: Office) -> None:
    noted = Outbox(office.engine, "relay/redis")

    def position() -> int:
        noted.read_positions()
        return noted.sent.passed

    create(office.engine)
    assert office.relay.step() == 1
    before = position()
    create(office.engine)
    assert office.relay.step() == 1
    assert (len(office.taken(AUDIT)), position()) == (2, before)
    office.world.clock.advance(0.2)
    assert office.relay.step() == 0
    assert position() == before + 1
    create(office.engine)
    assert office.relay.step() == 1
    office.relay.close()
    assert position() == before + 2
    office.relay = office.new_relay()


def test_one_of_two_relays_publishes_and_the_other_takes_over(office: Office) -> None:
    second = office.new_relay()
    first_task = create(office.engine)
    assert second.step() == 0
    assert office.relay.drain() == 1
    second_task = create(office.engine)
    # The first is silent from now on.
    office.world.clock.advance(2)
    assert second.step() == 0
    office.world.clock.advance(2)
    assert second.step() == 1
    assert office.relay.step() == 0
    assert set(office.taken(AUDIT)) == {f"{first_task}.1", f"{second_task}.1"}
    second.close()


def test_a_relay_that_wakes_up_behind_its_successor_marks_nothing(office: Office) -> None:
    create(office.engine)
    second = office.new_relay()
    asleep = office.relay._leader_lease  # noqa: SLF001 - it does not look at its lease
    asleep._asked = office.engine.clock.monotonic() + 100  # noqa: SLF001
    office.world.clock.advance(4)
    assert second.drain() == 1
    create(office.engine)
    assert second.drain() == 1
    assert office.relay.step() == 0
    assert second.step() == 0
    assert len(set(office.taken(AUDIT))) == 2
    second.close()


def test_an_event_is_trimmed_once_all_groups_have_acknowledged_it_and_not_before(
    office: Office,
) -> None:
    assert office.length == 0
    create(office.engine)
    office.relay.drain()
    office.handle_once(AUDIT)
    office.keep_up()
    assert office.length == 1
    office.handle_once(MAIL)
    office.keep_up()
    assert office.length == 0


def test_a_redis_that_lost_everything_is_given_what_was_not_acknowledged(office: Office) -> None:
    done = create(office.engine)
    office.relay.drain()
    assert office.taken(AUDIT) == office.taken(MAIL) == [f"{done}.1"]
    office.keep_up()
    open_one = create(office.engine)
    office.relay.drain()
    assert office.taken(AUDIT) == [f"{open_one}.1"]
    office.world.lose()
    office.keep_up()
    office.relay.drain()
    for each in (AUDIT, MAIL):
        assert office.taken(each) == [f"{open_one}.1"]
    fresh = create(office.engine)
    office.relay.drain()
    assert office.taken(MAIL) == [f"{fresh}.1"]


def test_a_loss_in_the_middle_of_the_upkeep_is_not_taken_for_acknowledged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = create(office.engine)
    office.relay.drain()
    with monkeypatch.context() as patched:
        patched.setattr(office.bus, "trim", lambda *_, **__: office.world.lose())
        office.keep_up()
    office.relay.drain()
    office.keep_up()
    office.relay.drain()
    assert office.taken(AUDIT) == [f"{task}.1"]


def test_a_lost_stream_is_noticed_when_the_next_event_is_published(office: Office) -> None:
    tasks = [create(office.engine) for _ in range(8)]
    office.relay.drain()
    assert office.world.client is not None
    office.world.client.delete(office.bus.stream(Channel.EVENTS, 0))
    tasks.append(create(office.engine))
    office.relay.drain()
    assert set(office.taken(AUDIT)) == {f"{each}.1" for each in tasks}


def test_a_redis_that_came_back_without_its_newest_is_given_them_again(office: Office) -> None:
    first = create(office.engine)
    office.relay.drain()
    assert office.world.client is not None
    marker = office.bus.relay_key(office.engine.store)
    before = str(office.world.client.hget(marker, "passed"), "ascii")
    second = create(office.engine)
    office.relay.drain()
    # As it would stand in an older copy of its memory.
    for each in range(office.bus.partitions):
        stream = office.bus.stream(Channel.EVENTS, each)
        for entry, fields in office.world.client.xrange(stream):
            if second.encode() in fields[b"envelope"]:
                office.world.client.xdel(stream, entry)
    office.world.client.hset(marker, "passed", before)
    office.keep_up()
    office.relay.drain()
    assert set(office.taken(AUDIT)) == {f"{first}.1", f"{second}.1"}


@pytest.mark.parametrize("page", [1, 1_000])
def test_numbers_of_another_store_tell_nothing_of_what_is_lost_or_acknowledged(
    office: Office, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of the store itself before a backup was put back, which gives them once more."""
    monkeypatch.setattr("holdfast.bus.execution_buses.redis.PAGE", page)
    ahead = 10**9
    others = [(each, write_envelope(each)) for each in (message(run, run) for run in RUNS)]
    office.bus.begin_relay("another", ahead)
    assert office.bus.relay("another", others, (ahead, ahead + 1, ahead))
    task = create(office.engine)
    office.relay.drain()
    office.keep_up()
    office.world.lose()
    office.bus.begin_relay("another", ahead)
    office.keep_up()
    office.relay.drain()
    assert office.taken(AUDIT) == [f"{task}.1"]


def test_nothing_is_trimmed_while_a_group_has_not_come_back(office: Office) -> None:
    task = create(office.engine)
    office.relay.drain()
    office.world.lose()
    office.keep_up()
    office.relay.drain()
    assert office.taken(AUDIT) == [f"{task}.1"]
    office.keep_up()
    assert office.taken(MAIL) == [f"{task}.1"]
    office.keep_up()
    assert office.length == 0


def test_a_group_that_is_forgotten_is_not_waited_for(office: Office) -> None:
    create(office.engine)
    office.relay.drain()
    office.handle_once(AUDIT)
    forget(office.engine, office.bus, MAIL)
    office.keep_up()
    assert office.length == 0
    assert office.taken(replace(AUDIT, group="new")) == []


def test_a_relay_is_forgotten_once_it_runs_no_more_and_the_last_with_those_it_told(
    office: Office,
) -> None:
    engine = office.engine
    subscribe(engine, office.bus, COMMANDS)
    other = Relay(engine, office.bus, RelayOptions(name="other"))
    other.drain()
    assert not forget_relay(engine, "relay/redis")
    office.relay.close()
    assert forget_relay(engine, "relay/redis")
    assert (list_relays(engine), list_external_groups(engine, office.bus, Channel.EVENTS)) == (
        ["relay/other"],
        ["audit", "mail"],
    )
    # It is silent from now on.
    office.world.clock.advance(4)
    assert forget_relay(engine, "relay/other")
    assert (list_relays(engine), list_external_groups(engine, office.bus, Channel.EVENTS)) == (
        [],
        [],
    )
    assert list_external_groups(engine, office.bus, Channel.COMMANDS) == [COMMANDS.group]
    other.close()
    office.relay = office.new_relay()


def test_a_relay_that_comes_back_after_it_was_forgotten_goes_on_where_it_stood(
    office: Office,
) -> None:
    engine = office.engine
    for _ in range(2):
        create(engine)
        office.relay.drain()
        office.handle_once(AUDIT)
        # It is in trouble for a while, as when its Redis does not answer.
        office.world.clock.advance(4)
        assert forget_relay(engine, "relay/redis")
        with raw(engine.settings.url) as run:
            assert run("SELECT passed FROM holdfast_read_by_all")[0]["passed"] is None
        assert engine.doctor().ok
        meanwhile = create(engine)
        assert office.relay.drain() == 1
        assert office.taken(AUDIT) == [f"{meanwhile}.1"]
        assert list_relays(engine) == ["relay/redis"]


def test_an_event_that_was_committed_late_is_not_lost_with_redis(
    opened_worlds: dict[str, World],
) -> None:
    office = Office(opened_worlds["redis beside postgresql"])
    with office.engine.transaction() as connection:
        early = office.engine.tasks.create(NewTask(title="early"), connection=connection).id
        late = create(office.engine)
        office.relay.drain()
        assert office.taken(AUDIT) == office.taken(MAIL) == [f"{late}.1"]
        office.keep_up()
    office.relay.drain()
    office.keep_up()
    office.world.lose()
    office.keep_up()
    office.relay.drain()
    assert f"{early}.1" in office.taken(AUDIT)
    office.relay.close()
    office.world.clean()
