"""Every execution bus: in order for each run, at least once, to each group, and nothing lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.bus.consumer import ConsumerOptions
from holdfast.bus.consumer_groups import subscribe
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.relay import RelayOptions
from holdfast.bus.retention import RetentionOptions
from holdfast.errors import InvalidInput
from tests.contract.bus.worlds import (
    COMMANDS,
    PARTITIONS,
    RUNS,
    World,
    message,
    names,
    share,
    take_all,
)

OTHER = Subscription(channel=Channel.COMMANDS, group="audit")


def publish(world: World, *told: str, run: str = RUNS[0]) -> None:
    world.bus.publish_command(Channel.COMMANDS, *(message(each, run) for each in told))


def test_each_group_is_given_every_message_in_the_order_of_its_run(world: World) -> None:
    for number in range(20):
        publish(world, f"m{number:02}", run=RUNS[number % len(RUNS)])
    for subscription in (COMMANDS, OTHER):
        found = take_all(world.bus, share(subscription=subscription))
        assert sorted(found) == [f"m{number:02}" for number in range(20)]
        for place in range(len(RUNS)):
            own = [each for each in found if int(each[1:]) % len(RUNS) == place]
            assert own == sorted(own)
        assert take_all(world.bus, share(subscription=subscription)) == []


def test_a_message_arrives_as_it_was_sent(world: World) -> None:
    sent = message("m1").follow("run.cancel", {"why": "ü"}, created_at=7)
    world.bus.publish_command(Channel.COMMANDS, sent)
    (batch,) = world.bus.fetch(share(), count=10)
    assert batch.envelopes == (sent,)


def test_a_run_is_in_one_partition_and_the_partitions_share_the_runs(world: World) -> None:
    sent = {run: message(f"of {run}", run) for run in RUNS}
    world.bus.publish_command(Channel.COMMANDS, *sent.values())
    found = {each: take_all(world.bus, share(each)) for each in range(PARTITIONS)}
    for run, told in sent.items():
        assert [place for place in found if f"of {run}" in found[place]] == [
            world.bus.partition_of(told)
        ]
    assert len([place for place, told in found.items() if told]) > 1
    assert sum(map(len, found.values())) == len(RUNS)


def test_an_unacknowledged_message_comes_again_to_the_next_consumer(world: World) -> None:
    publish(world, "m1", "m2")
    assert names(world.bus.fetch(share(), count=10)) == ["m1", "m2"]
    publish(world, "m3")
    successor = share(consumer="service-2")
    again = world.bus.recover(successor, count=10)
    assert all(world.bus.acknowledge(batch) for batch in again)
    assert names(again) + take_all(world.bus, successor) == ["m1", "m2", "m3"]
    assert world.bus.recover(share(), count=10) == []
    assert world.bus.fetch(share(), count=10) == []


def test_messages_come_in_parts_when_few_are_asked_for(world: World) -> None:
    publish(world, "m1", "m2", "m3")
    first = world.bus.fetch(share(), count=2)
    assert names(first) == ["m1", "m2"]
    assert all(world.bus.acknowledge(batch) for batch in first)
    assert names(world.bus.fetch(share(), count=2)) == ["m3"]


def test_channels_are_apart(world: World) -> None:
    publish(world, "m1")
    world.bus.publish_event(Channel.RESULTS, message("m1"))
    results = Subscription(channel=Channel.RESULTS, group="service")
    assert take_all(world.bus, share(subscription=results)) == ["m1"]
    assert take_all(world.bus, share()) == ["m1"]
    assert take_all(world.bus, share(subscription=results)) == []


def test_a_group_that_begins_from_now_is_given_nothing_of_the_past(world: World) -> None:
    publish(world, "m1")
    fresh = replace(OTHER, from_now=True)
    world.bus.subscribe(fresh)
    publish(world, "m2")
    world.bus.subscribe(fresh)
    assert take_all(world.bus, share(subscription=fresh)) == ["m2"]


def test_a_group_is_given_again_what_came_since_a_moment(world: World) -> None:
    publish(world, "m1", "m2")
    assert take_all(world.bus, share()) == ["m1", "m2"]
    world.bus.rewind(COMMANDS, 0)
    assert take_all(world.bus, share()) == ["m1", "m2"]
    publish(world, "m3")
    # A long way ahead, by whichever clock the bus has.
    world.bus.rewind(COMMANDS, 4_000_000_000_000_000)
    assert take_all(world.bus, share()) == ["m3"]
    assert take_all(world.bus, share(subscription=OTHER)) == ["m1", "m2", "m3"]


def test_a_message_that_a_group_is_to_be_given_again_is_not_trimmed(world: World) -> None:
    publish(world, "m1")
    assert take_all(world.bus, share()) == ["m1"]
    world.bus.rewind(COMMANDS, 1_000_000)
    assert world.bus.trim(Channel.COMMANDS, before=2**62) == 0
    assert take_all(world.bus, share()) == ["m1"]
    assert world.bus.trim(Channel.COMMANDS, before=2**62) == 1


def test_lag_counts_what_was_not_acknowledged(world: World) -> None:
    world.bus.subscribe(COMMANDS)
    assert world.bus.lag(COMMANDS) == 0
    publish(world, "m1", "m2")
    assert world.bus.lag(COMMANDS) == 2
    batches = world.bus.fetch(share(), count=10)
    publish(world, "m3")
    assert world.bus.lag(COMMANDS) == 3
    assert all(world.bus.acknowledge(batch) for batch in batches)
    assert world.bus.lag(COMMANDS) == 1


def test_only_messages_that_every_group_has_acknowledged_are_trimmed(world: World) -> None:
    later = world.clock.now() + 1_000_000
    publish(world, "m1", "m2")
    assert world.bus.trim(Channel.COMMANDS, before=later) == 0
    world.bus.subscribe(OTHER)
    assert take_all(world.bus, share()) == ["m1", "m2"]
    assert world.bus.trim(Channel.COMMANDS, before=later) == 0
    first = world.bus.fetch(share(subscription=OTHER), count=1)
    assert world.bus.trim(Channel.COMMANDS, before=later) == 0
    assert all(world.bus.acknowledge(batch) for batch in first)
    assert world.bus.trim(Channel.COMMANDS, groups=["unheard"], before=later) == 0
    assert world.bus.trim(Channel.COMMANDS, groups=["audit"], before=later) == 1
    assert take_all(world.bus, share(subscription=OTHER)) == ["m2"]
    assert world.bus.trim(Channel.COMMANDS, before=later) == 1
    publish(world, "m3")
    assert take_all(world.bus, share()) == ["m3"]


def test_a_group_that_is_forgotten_holds_nothing_back(world: World) -> None:
    later = world.clock.now() + 1_000_000
    publish(world, "m1")
    world.bus.subscribe(OTHER)
    assert take_all(world.bus, share()) == ["m1"]
    world.bus.forget(OTHER)
    assert world.bus.trim(Channel.COMMANDS, before=later) == 1


def test_a_group_that_was_lost_is_made_again_and_misses_nothing(world: World) -> None:
    publish(world, "m1")
    assert take_all(world.bus, share()) == ["m1"]
    world.bus.forget(COMMANDS)
    publish(world, "m2")
    assert take_all(world.bus, share()) == ["m1", "m2"]
    world.bus.forget(COMMANDS)
    assert names(world.bus.recover(share(), count=10)) == []
    world.bus.forget(COMMANDS)
    world.bus.rewind(COMMANDS, 0)
    assert take_all(world.bus, share()) == ["m1", "m2"]


def test_a_broken_envelope_is_refused_and_nothing_of_the_call_is_sent(world: World) -> None:
    broken = replace(message("m2"), trace_id="none")
    wrong: Any = message("m2").as_json()
    with pytest.raises(InvalidInput, match=r"^trace_id"):
        world.bus.publish_command(Channel.COMMANDS, message("m1"), broken)
    with pytest.raises(InvalidInput, match=r"^envelope: must be an Envelope, not dict"):
        world.bus.publish_command(Channel.COMMANDS, wrong)
    with pytest.raises(InvalidInput, match=r"^created_at: must be a number of microseconds"):
        world.bus.publish_command(Channel.COMMANDS, Envelope(**wrong))
    assert take_all(world.bus, share()) == []


def test_commands_and_events_go_on_channels_of_their_own(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"^channel"):
        world.bus.publish_command(Channel.RESULTS, message("m1"))
    with pytest.raises(InvalidInput, match=r"^channel"):
        world.bus.publish_event(Channel.EVENTS, message("m1"))
    for group in ("two words", "relay/redis", "elsewhere/x"):
        with pytest.raises(InvalidInput, match=r"^group"):
            world.bus.subscribe(replace(COMMANDS, group=group))
    known: Any = "workflow.commands"
    nowhere: Any = "nowhere"
    assert Subscription(channel=known, group="service") == COMMANDS
    with pytest.raises(InvalidInput, match=r"^channel: 'nowhere' is none"):
        Subscription(channel=nowhere, group="service")


def test_options_with_a_batch_or_count_of_zero_are_refused() -> None:
    for options in (ConsumerOptions, RelayOptions):
        with pytest.raises(InvalidInput, match=r"^batch"):
            options(batch=0)
    with pytest.raises(InvalidInput, match=r"^count"):
        RetentionOptions(count=0)


def test_a_bus_that_answers_is_healthy(world: World) -> None:
    assert world.bus.health().ok


def test_the_groups_of_a_channel_and_its_newest_messages_are_told(world: World) -> None:
    assert world.bus.groups(Channel.COMMANDS) == []
    assert world.bus.latest(Channel.COMMANDS, 5) == []
    for number in range(4):
        publish(world, f"m{number}", run=RUNS[number])
    world.bus.publish_event(Channel.RESULTS, message("result"))
    for subscription in (COMMANDS, OTHER):
        subscribe(world.engine, world.bus, subscription)
    assert world.bus.groups(Channel.COMMANDS) == ["audit", "service"]
    assert world.bus.groups(Channel.RESULTS) == []
    newest = [each.message_id for each in world.bus.latest(Channel.COMMANDS, 3)]
    assert sorted(newest) == ["m1", "m2", "m3"]


def test_a_bus_of_other_partitions_than_there_are_is_refused(world: World) -> None:
    world.bus.subscribe(COMMANDS)
    world.bus.partitions = 2
    try:
        with pytest.raises(InvalidInput, match=r"^partitions: .* partitions=4"):
            world.bus.subscribe(COMMANDS)
    finally:
        world.bus.partitions = PARTITIONS


def test_partitions_divide_the_slots_evenly_or_are_refused() -> None:
    for partitions in (0, 3, 64):
        with pytest.raises(InvalidInput, match=r"^partitions"):
            RedisBus("redis://127.0.0.1:1", partitions=partitions)
