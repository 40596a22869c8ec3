"""The bus for front ends: consumer groups and their lag, messages, and parked messages.

The duties on the buses that a server or worker takes part in stand here too: relay, retention and
the consumers of commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from holdfast.bus.command_consumer import CONSUMED_CHANNELS, BusOwnership, CommandConsumer
from holdfast.bus.consumer_groups import (
    RELAY_PREFIX,
    forget,
    forget_relay,
    group_of,
    list_groups_elsewhere,
    list_relays,
)
from holdfast.bus.envelope import Envelope, read_envelope
from holdfast.bus.execution_bus import (
    COMMAND_CHANNELS,
    Channel,
    ExecutionBus,
    Subscription,
    read_channel,
)
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.parked_messages import Kept, Parked
from holdfast.bus.partition_leases import list_readers
from holdfast.bus.relay import Relay
from holdfast.bus.retention import Retention, RetentionOptions
from holdfast.engine.engine import Engine
from holdfast.engine.input.validation import number
from holdfast.engine.read.pages import PAGE_SIZE, read_limit
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.result import TransitionResult
from holdfast.model.text import clean_key
from holdfast.model.token import TOKEN_PATTERN
from holdfast.service.queries.views import View, format_time, without_nulls
from holdfast.settings import KeepTimes

REPLACEMENT = "***"
DUTY_PREFIXES = ("relay/", "retention", "offers/")
# A publisher with a transaction of its own sends no hint: only a poll finds the message.
POLL_INTERVAL = 0.25


def view_message(envelope: Envelope) -> View:
    """A message without the tokens in its payload, which let their bearer act."""
    return {**envelope.as_json(), "payload": _hide_tokens(envelope.payload)}


def _hide_tokens(value: Any) -> Any:  # noqa: ANN401 - a payload is any JSON
    if isinstance(value, dict):
        return {
            name: REPLACEMENT if name.lower() == "token" else _hide_tokens(each)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_hide_tokens(each) for each in value]
    return TOKEN_PATTERN.sub(REPLACEMENT, value) if isinstance(value, str) else value


class ParkedMessages:
    """The messages that handlers failed on, of every bus."""

    def __init__(self, engine: Engine) -> None:
        self._parked = Parked(engine)

    def page(self, *, everything: bool = False, limit: int = PAGE_SIZE, after: int = 0) -> View:
        """A page of the messages parked, or replayed and not tried since; or of all that wait."""
        number("after", after, least=0)
        kept = self._parked.list(parked=not everything, after=after, limit=read_limit(limit))
        following = kept[-1].arrival if len(kept) == limit else None
        return without_nulls(items=[_view_parked_message(each) for each in kept], next=following)

    def replay(self, handler: str, message_id: str) -> View:
        return _change_parked_message(self._parked.replay, handler, message_id)

    def drop(self, handler: str, message_id: str) -> View:
        return _change_parked_message(self._parked.drop, handler, message_id)

    def count_waiting(self, channel: str, group: str | None = None) -> View:
        """Count the waiting and the parked messages of a channel, for one group or for all."""
        counted = [
            numbers
            for (each, handler), numbers in self._parked.count().items()
            if each == channel and group in {None, group_of(handler)}
        ]
        return {
            "waiting": sum(waiting for waiting, _ in counted),
            "parked": sum(parked for _, parked in counted),
        }


def _change_parked_message(
    change: Callable[[str, str], TransitionResult], handler: str, message_id: str
) -> View:
    if not change(clean_key("handler", handler), clean_key("message_id", message_id)).ok:
        raise NotFound(f"{message_id} for {handler}", "parked message", "`holdfast bus parked`")
    return {"ok": True, "repeated": False, "handler": handler, "message_id": message_id}


def _view_parked_message(kept: Kept) -> View:
    return without_nulls(
        handler=kept.handler,
        message_id=kept.message_id,
        channel=kept.channel,
        about=kept.about,
        state=kept.state,
        tries=kept.tries,
        due_at=format_time(kept.due_at),
        parked_at=format_time(kept.parked_at),
        error=kept.error,
        envelope=view_message(kept.envelope),
    )


class BusAdmin:
    """The bus of a store: the SQL bus in the store, or the Redis at a URL."""

    def __init__(self, engine: Engine, url: str | None = None) -> None:
        self._engine = engine
        self._parked = ParkedMessages(engine)
        self._bus: ExecutionBus = RedisBus(url) if url else SqlBus(engine)

    @property
    def _bus_name(self) -> str:
        return "redis" if self._bus.is_external else "store"

    def status(self) -> View:
        """Which bus it is, whether the bus answers, and which process has which duty."""
        health = self._bus.health()
        leases = self._engine.database.view(
            lambda tx: tx.read("live_leases", first="bus/", last="bus0")
        )
        held = {row["key"].removeprefix("bus/"): row["owner"] for row in leases}
        return without_nulls(
            bus=self._bus_name,
            ok=health.ok,
            detail=health.detail or None,
            duties={duty: who for duty, who in held.items() if duty.startswith(DUTY_PREFIXES)},
            relays=list_relays(self._engine),
            **self.groups() if health.ok else {"items": []},
        )

    def groups(self) -> View:
        found = [(channel, group) for channel in Channel for group in self._bus.groups(channel)]
        return {"items": [self._view_lag(channel, group) for channel, group in found]}

    def lag(self, channel: str, group: str) -> View:
        """How many messages a group has not acknowledged, and how many wait in the store for it."""
        known = self._require_group(channel, group)
        return self._view_lag(known.channel, known.group)

    def _view_lag(self, channel: Channel, group: str) -> View:
        behind = self._bus.lag(Subscription(channel=channel, group=group))
        told = {"channel": channel.value, "group": group, "lag": behind}
        return {
            **told,
            **self._parked.count_waiting(channel.value, group),
            "readers": _view_readers(self._engine, self._bus.key_prefix, channel, group),
        }

    def forget(self, channel: str, group: str) -> View:
        if channel == Channel.EVENTS and group.startswith(RELAY_PREFIX):
            self._forget_relay(group)
        else:
            self._forget_group(self._require_group(channel, group))
        return {"ok": True, "channel": channel, "group": group}

    def _forget_group(self, known: Subscription) -> None:
        if reading := list_readers(self._engine, known, key_prefix=self._bus.key_prefix):
            names = ", ".join(each.name for each in reading)
            reason = f"{known.group} is read by {names}; stop that first"
            raise InvalidInput("group", reason)
        forget(self._engine, self._bus, known)

    def _forget_relay(self, name: str) -> None:
        known = list_relays(self._engine)
        if name not in known:
            hint = f"there is {', '.join(known)}" if known else "there is none"
            raise NotFound(name, "relay", hint)
        if not forget_relay(self._engine, name):
            reason = f"{name} runs: `holdfast bus` tells in which process; stop that first"
            raise InvalidInput("group", reason)

    def tail(self, channel: str, count: int) -> View:
        """The newest messages of a channel, oldest first."""
        items = [view_message(each) for each in self._bus.latest(read_channel(channel), count)]
        return {"items": items, **self._parked.count_waiting(channel)}

    def publish(self, channel: str, text: str) -> View:
        chosen, envelope = read_channel(channel), read_envelope(text)
        if chosen is Channel.EVENTS:
            reason = "the events of the store are its own; commands go to 'workflow.commands'"
            raise InvalidInput("channel", reason)
        publish = (
            self._bus.publish_command if chosen in COMMAND_CHANNELS else self._bus.publish_event
        )
        publish(chosen, envelope)
        groups = self._bus.groups(chosen)
        return {
            "ok": True,
            "channel": channel,
            "message_id": envelope.message_id,
            "bus": self._bus_name,
            "groups": groups,
        }

    def _require_group(self, channel: str, group: str) -> Subscription:
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


def _view_readers(engine: Engine, key_prefix: str, channel: Channel, group: str) -> list[View]:
    """The live consumers of a group, by their stable names; since when, and of how much of it."""
    read = list_readers(engine, Subscription(channel=channel, group=group), key_prefix=key_prefix)
    return [
        without_nulls(name=each.name, since=format_time(each.since), partitions=each.partitions)
        for each in read
    ]


def view_all_groups(engine: Engine) -> View:
    """The groups in the store, and those elsewhere that the store knows of, with their readers.

    How far a group elsewhere has come is known where its bus is.
    """
    with BusAdmin(engine) as admin:
        own = admin.groups()["items"]
    elsewhere = [
        {
            "channel": channel.value,
            "group": known.group,
            "bus": known.bus,
            "readers": _view_readers(engine, known.key_prefix, channel, known.group),
        }
        for channel in Channel
        for known in list_groups_elsewhere(engine, channel)
    ]
    return {"items": [*own, *elsewhere]}


@contextmanager
def run_bus_duties(
    engine: Engine, keep: KeepTimes, redis: str | None = None, *, consume_commands: bool = False
) -> Iterator[None]:
    """Take part in the duties on the buses until the end of the block.

    For each duty one process of all holds a lease and does it. With `consume_commands` this
    process also carries out the commands that arrive over the buses, whoever sent them.
    """
    with ExitStack() as stack:
        buses: list[ExecutionBus] = [SqlBus(engine, look=POLL_INTERVAL)]
        stack.callback(buses[0].close)
        if redis:
            streams = RedisBus(redis)
            stack.callback(streams.close)
            stack.enter_context(Relay(engine, streams))
            buses.append(streams)
        for bus in buses if consume_commands else ():
            ownership = BusOwnership(engine, bus)
            for channel in CONSUMED_CHANNELS:
                stack.enter_context(CommandConsumer(engine, bus, channel, ownership))
        stack.enter_context(Retention(engine, buses, RetentionOptions(runs=keep.runs)))
        yield
