"""The buses for front ends: groups and how far behind they are, and messages."""

from __future__ import annotations

from typing import Self

from holdfast.bus.consumer_groups import RELAY, forget, forget_relay, relays
from holdfast.bus.envelope import read_envelope
from holdfast.bus.execution_bus import (
    FOR_COMMANDS,
    Channel,
    ExecutionBus,
    Subscription,
    read_channel,
)
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.partition_leases import members
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from holdfast.service.messages import view_message
from holdfast.service.parked import ParkedMessages
from holdfast.service.views import View, present

DUTIES = ("relay/", "retention", "offers/")


class Buses:
    """The bus of a store: the one in it, or the Redis whose URL is given."""

    def __init__(self, engine: Engine, url: str | None = None) -> None:
        self._engine = engine
        self._parked = ParkedMessages(engine)
        self._bus: ExecutionBus = RedisBus(url) if url else SqlBus(engine)

    @property
    def _where(self) -> str:
        return "redis" if self._bus.elsewhere else "store"

    def status(self) -> View:
        """Where the messages are, whether that answers, and which process has which duty."""
        health = self._bus.health()
        leases = self._engine.database.view(
            lambda tx: tx.read("live_leases", first="bus/", last="bus0")
        )
        held = {row["key"].removeprefix("bus/"): row["owner"] for row in leases}
        return present(
            bus=self._where,
            ok=health.ok,
            detail=health.detail or None,
            duties={duty: who for duty, who in held.items() if duty.startswith(DUTIES)},
            relays=relays(self._engine),
            **self.groups() if health.ok else {"items": []},
        )

    def groups(self) -> View:
        found = [(channel, group) for channel in Channel for group in self._bus.groups(channel)]
        return {"items": [self._lag(channel, group) for channel, group in found]}

    def lag(self, channel: str, group: str) -> View:
        """How many messages a group has not acknowledged, and how many wait in the store for it."""
        known = self._known(channel, group)
        return self._lag(known.channel, known.group)

    def _lag(self, channel: Channel, group: str) -> View:
        behind = self._bus.lag(Subscription(channel=channel, group=group))
        told = {"channel": channel.value, "group": group, "lag": behind}
        return {**told, **self._parked.waiting(channel.value, group)}

    def forget(self, channel: str, group: str) -> View:
        if channel == Channel.EVENTS and group.startswith(RELAY):
            self._forget_relay(group)
        else:
            self._forget_group(self._known(channel, group))
        return {"ok": True, "channel": channel, "group": group}

    def _forget_group(self, known: Subscription) -> None:
        if reading := members(self._engine, known, place=self._bus.place):
            reason = f"{known.group} is read by {', '.join(reading)}; stop that first"
            raise InvalidInput("group", reason)
        forget(self._engine, self._bus, known)

    def _forget_relay(self, name: str) -> None:
        known = relays(self._engine)
        if name not in known:
            hint = f"there is {', '.join(known)}" if known else "there is none"
            raise NotFound(name, "relay", hint)
        if not forget_relay(self._engine, name):
            reason = f"{name} runs: `holdfast bus` tells in which process; stop that first"
            raise InvalidInput("group", reason)

    def tail(self, channel: str, count: int) -> View:
        """The newest messages of a channel, in order."""
        items = [view_message(each) for each in self._bus.latest(read_channel(channel), count)]
        return {"items": items, **self._parked.waiting(channel)}

    def publish(self, channel: str, text: str) -> View:
        chosen, envelope = read_channel(channel), read_envelope(text)
        if chosen is Channel.EVENTS:
            reason = "the events of the store are its own; commands go to 'workflow.commands'"
            raise InvalidInput("channel", reason)
        publish = self._bus.publish_command if chosen in FOR_COMMANDS else self._bus.publish_event
        publish(chosen, envelope)
        groups = self._bus.groups(chosen)
        return {
            "ok": True,
            "channel": channel,
            "message_id": envelope.message_id,
            "bus": self._where,
            "groups": groups,
        }

    def _known(self, channel: str, group: str) -> Subscription:
        chosen = read_channel(channel)
        known = self._bus.groups(chosen)
        if group not in known:
            hint = f"there is {', '.join(known)}" if known else "there is none"
            raise NotFound(group, f"group of {channel}", hint)
        return Subscription(channel=chosen, group=group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bus.close()
