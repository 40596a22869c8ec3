"""Who reads a group: the consumers that live, by their stable names, and since when."""

from __future__ import annotations

from contextlib import closing

from holdfast.bus import Channel, Consumer, ConsumerOptions, Handler, SqlBus, Subscription
from holdfast.bus.partition_leases import TTL, GroupReader, list_readers
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.service.admin.bus import view_all_groups

GROUP = Subscription(channel=Channel.COMMANDS, group="shop")


def test_readers_are_told_by_name_since_they_came(engine: Engine, clock: ManualClock) -> None:
    handlers = [Handler(name="note", handle=lambda *_: None)]
    with closing(SqlBus(engine)) as bus:
        first, second = (
            Consumer(engine, bus, GROUP, handlers, ConsumerOptions(name=name))
            for name in ("shop-a-0", "shop-b-0")
        )
        first.take_share()
        begun = clock.now()
        clock.advance(TTL / 2)
        first.take_share()
        assert list_readers(engine, GROUP) == [
            GroupReader(name="shop-a-0", since=begun, partitions=4)
        ]
        second.take_share()
        later = clock.now()
        clock.advance(TTL / 2)
        for each in (first, second, first, second):
            each.take_share()
        told = list_readers(engine, GROUP)
        assert [(each.name, each.since) for each in told] == [
            ("shop-a-0", begun),
            ("shop-b-0", later),
        ]
        clock.advance(3 * TTL)
        assert list_readers(engine, GROUP) == []
        first.take_share()
        (back,) = list_readers(engine, GROUP)
        assert (back.name, back.since) == ("shop-a-0", clock.now())
        (item,) = view_all_groups(engine)["items"]
        assert [each["name"] for each in item["readers"]] == ["shop-a-0"]
        first.close()
        second.close()
