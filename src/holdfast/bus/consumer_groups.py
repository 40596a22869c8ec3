"""Consumer groups and relays: those the store knows, even if an external bus has lost them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.bus.execution_bus import Channel, ExecutionBus, Subscription
from holdfast.engine.engine import Engine, EngineOwner, engine_of

RELAY_PREFIX = "relay/"
EXTERNAL_PREFIX = "elsewhere/{"
# Stands in place of a channel, for the positions of relays that were forgotten.
FORGOTTEN_CHANNEL = "forgotten"


def subscribe(engine: Engine, bus: ExecutionBus, subscription: Subscription) -> None:
    """Make a group; from now on nothing is removed that the group has not acknowledged."""
    bus.subscribe(subscription)
    if bus.is_external:
        named = _position_key(bus, subscription)
        _run_statement(engine, "insert_positions", **named, rows=[(0,)], passed=0, holes="[]")


def forget(store: EngineOwner, bus: ExecutionBus, subscription: Subscription) -> None:
    """End a group: nothing is kept for it any more, and its failed messages are removed.

    Failed messages are not kept by bus: those of a group that is on another bus too stay.
    """
    engine = engine_of(store)
    if bus.is_external:
        _run_statement(engine, "remove_positions", **_position_key(bus, subscription))
    bus.forget(subscription)
    channel = subscription.channel.value
    if subscription.group in map(_group_of_consumer, _list_consumers(engine, subscription.channel)):
        return
    rows = engine.database.view(lambda tx: tx.read("count_deliveries"))
    own = [row["handler"] for row in rows if group_of(row["handler"]) == subscription.group]
    with engine.database.begin() as connection:
        tx = engine.database.join(connection)
        tx.run("remove_deliveries", channel=channel, handlers=sorted(set(own)))


def forget_relay(engine: Engine, name: str) -> bool:
    """End a relay, `relay/NAME`, that never runs again; False while it runs, or if there is none.

    With the last relay, the groups on Redis end, which get no events any more. A relay that comes
    back after all, as when only its Redis was away, goes on at its old position.
    """
    with engine.database.begin() as connection:
        tx = engine.database.join(connection)
        gone = tx.write("remove_relay", relay=name, lease=f"bus/{name}")
        fields = ("place", "passed", "holes", "version")
        rows = [tuple(row[each] for each in fields) for row in gone if row["consumers"] == name]
        tx.run("keep_forgotten", rows=rows, relay=name, forgotten=FORGOTTEN_CHANNEL)
        return bool(gone)


def list_relays(engine: Engine) -> list[str]:
    """The relays that have published the events of a store and were not forgotten: `relay/NAME`."""
    return [
        each for each in _list_consumers(engine, Channel.EVENTS) if each.startswith(RELAY_PREFIX)
    ]


def group_of(handler: str) -> str:
    """The group of a handler, whose whole name is `GROUP/NAME`."""
    return handler.rpartition("/")[0]


def list_external_groups(engine: Engine, bus: ExecutionBus, channel: Channel) -> list[str]:
    """The groups that an external bus must have before anything is removed from it."""
    named = [each for each in _list_consumers(engine, channel) if each.startswith(bus.key_prefix)]
    return [each.removeprefix(bus.key_prefix) for each in named]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupElsewhere:
    """A group on an external bus; the prefix of its names in the store says on which."""

    key_prefix: str
    group: str

    @property
    def bus(self) -> str:
        """The prefix by which people know the bus."""
        return self.key_prefix.removeprefix(EXTERNAL_PREFIX).removesuffix("}/")


def list_groups_elsewhere(engine: Engine, channel: Channel) -> list[GroupElsewhere]:
    """The groups of external buses that the store knows of."""
    names = [each for each in _list_consumers(engine, channel) if each.startswith(EXTERNAL_PREFIX)]
    return [
        GroupElsewhere(key_prefix=each[: -len(_group_of_consumer(each))], group=group)
        for each in names
        if (group := _group_of_consumer(each))
    ]


def _list_consumers(engine: Engine, channel: Channel) -> list[str]:
    rows = engine.database.view(lambda tx: tx.read("groups_of", channel=channel.value))
    return [row["consumers"] for row in rows]


def _group_of_consumer(name: str) -> str:
    """The group of a position's name, which may have the prefix of a bus."""
    return name.partition("}/")[2] if name.startswith(EXTERNAL_PREFIX) else name


def _position_key(bus: ExecutionBus, subscription: Subscription) -> dict[str, str]:
    return {
        "channel": subscription.channel.value,
        "consumers": bus.key_prefix + subscription.group,
    }


def _run_statement(engine: Engine, query: str, **parameters: Any) -> None:
    with engine.database.begin() as connection:
        engine.database.join(connection).run(query, **parameters)
