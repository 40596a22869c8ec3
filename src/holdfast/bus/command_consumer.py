"""The command consumer: the loop in which an engine consumes commands and results from a bus.

A Redis belongs to one store: of two stores that consume from it, each would get a part of what is
published.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.bus.command_handlers import claim_handler, command_handler, result_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.consumer_groups import subscribe
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, ExecutionBus, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.handler import UNREADABLE_HANDLER, Handler, Park
from holdfast.bus.periodic_loop import PeriodicLoop
from holdfast.engine.engine import Engine

logger = logging.getLogger(__name__)
# The pause between two checks of the owner: a Redis may lose the name, or somebody may delete it.
OWNER_CHECK_SECONDS = 30.0
# Programs that consume commands themselves use the group `engine`, with other handlers.
GROUP = "holdfast"
CONSUMED_CHANNELS = (Channel.COMMANDS, Channel.RESULTS)
_TTL = 15.0
# The time without a message after which the consumer is closed: an open one looks at each commit of
# others, and has leases to renew.
IDLE_SECONDS = 10.0


class BusOwnership:
    """The ownership of a bus: the bus in a store is that store's, a Redis the first store's."""

    def __init__(self, engine: Engine, bus: ExecutionBus) -> None:
        self._engine = engine
        self._bus = bus
        self._lock = engine.threads.lock()
        self._asked_at: float | None = None
        self._is_owner = True

    def is_owner(self) -> bool:
        if not isinstance(self._bus, RedisBus):
            return True
        with self._lock:
            now = self._engine.clock.monotonic()
            if self._asked_at is None or now - self._asked_at >= OWNER_CHECK_SECONDS:
                self._ask_owner(self._bus)
                self._asked_at = now
            return self._is_owner

    def _ask_owner(self, bus: RedisBus) -> None:
        stood, self._is_owner = self._is_owner, bus.owner(self._engine.store) == self._engine.store
        if stood and not self._is_owner:
            logger.warning(
                "another store hears the commands and results on this Redis, and this one does not:"
                " give this one another Redis, or hear from a program with RedisBus(url, prefix=…);"
                " if that store is no more, delete the key %s",
                bus.owner_key,
            )


class CommandConsumer(PeriodicLoop):
    """The consumer of one channel; each process starts one, and they share the partitions.

    Processes of one machine have the same name as consumers, so one of them has the machine's
    share. A bus that is away is tried again and again, and keeps no process from starting. Messages
    that were published before the first consumer subscribed are not carried out.
    """

    waits_in_step = True

    def __init__(
        self,
        engine: Engine,
        bus: ExecutionBus,
        channel: Channel,
        ownership: BusOwnership | None = None,
    ) -> None:
        super().__init__(engine, f"hearing {channel.value}")
        self._bus = bus
        self._ownership = ownership or BusOwnership(engine, bus)
        self._subscription = Subscription(channel=channel, group=GROUP, from_now=True)
        self._handlers = _make_handlers(engine, bus, channel)
        self._subscribed = False
        self._consumer: Consumer | None = None
        self._last_message_at = engine.clock.monotonic()
        self._closing.callback(self._close_consumer)

    @property
    def is_consuming(self) -> bool:
        """Whether a consumer is open; after a time without messages it is closed."""
        return self._consumer is not None

    def step(self, wait: float = 0.0) -> int:
        """Handle the messages that have come; the result is their number."""
        if not self._ownership.is_owner():
            self._close_consumer()
        elif self._consumer is None and self._has_messages():
            self._consumer = self._open_consumer()
        if self._consumer is None:
            self._stopped.wait(wait)
            return 0
        done = self._consumer.step(wait)
        now = self._engine.clock.monotonic()
        if done:
            self._last_message_at = now
        elif now >= self._last_message_at + IDLE_SECONDS and not self._has_messages():
            self._close_consumer()
        return done

    def _has_messages(self) -> bool:
        if not self._subscribed:
            # Subscribed before the consumer is made: a bus that is away then leaves nothing open.
            subscribe(self._engine, self._bus, self._subscription)
            self._subscribed = True
        # A consumer of an external bus waits there, and costs the store nothing.
        return self._bus.is_external or self._bus.lag(self._subscription) > 0 or self._has_failed()

    def _has_failed(self) -> bool:
        """Whether a message waits to be tried again, now or later."""
        names = [f"{GROUP}/{each.name}" for each in (UNREADABLE_HANDLER, *self._handlers)]
        channel = self._subscription.channel.value
        return bool(
            self._engine.database.view(
                lambda tx: tx.read("some_delivery", channel=channel, handlers=names)
            )
        )

    def _open_consumer(self) -> Consumer:
        self._last_message_at = self._engine.clock.monotonic()
        options = ConsumerOptions(ttl=_TTL)
        return Consumer(self._engine, self._bus, self._subscription, self._handlers, options)

    def _close_consumer(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class _UnknownMessages(Handler):
    """The handler of all messages whose type no other handler takes."""

    known: frozenset[str]

    def wants(self, envelope: Envelope) -> bool:
        return envelope.type not in self.known


def _make_handlers(engine: Engine, bus: ExecutionBus, channel: Channel) -> Sequence[Handler]:
    streams = bus if isinstance(bus, RedisBus) else None
    if channel is Channel.RESULTS:
        return _with_refusal([result_handler(engine, streams)])
    claims = [] if streams is None else [claim_handler(engine, streams)]
    return _with_refusal([command_handler(engine), *claims])


def _with_refusal(handlers: Sequence[Handler]) -> Sequence[Handler]:
    known = frozenset().union(*(each.types or () for each in handlers))

    def refuse(envelope: Envelope, _: object) -> None:
        reason = f"{envelope.type!r} is nothing that is heard here; heard are"
        raise Park(f"{reason} {', '.join(sorted(known))}")

    return [*handlers, _UnknownMessages(name="others", handle=refuse, known=known)]
