"""The engine as a consumer: carries out the commands, and takes the results, that a bus brings.

Whose a Redis is: of two stores that hear on one, each would be given a part of what comes.
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

# How often it is asked again: a Redis may be lost with the name on it, or given free.
OWNER_CHECK_SECONDS = 30.0


class BusOwnership:
    """Whether a bus is this store's to hear: its own always is, a Redis is the first one's."""

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


# Programs that hear by themselves are of the group `engine`, with other handlers.
GROUP = "holdfast"
CONSUMED_CHANNELS = (Channel.COMMANDS, Channel.RESULTS)
_TTL = 15.0
# A consumer looks at each commit of others, and has leases to keep: not where nothing comes.
IDLE_SECONDS = 10.0


class CommandConsumer(PeriodicLoop):
    """Start one with each process: those of one machine take turns, machines share the work.

    A bus that is away is tried again and again, and keeps nobody from starting. What was published
    before anybody heard is not carried out.
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
        """Whether it has a share of what comes; where nothing has come for long, it only looks."""
        return self._consumer is not None

    def step(self, wait: float = 0.0) -> int:
        """Do what has come; how much that was."""
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
            # By itself first: a bus that is away leaves nothing open behind it.
            subscribe(self._engine, self._bus, self._subscription)
            self._subscribed = True
        # Beside the store one waits on the wire, and costs the store nothing.
        return self._bus.is_external or self._bus.lag(self._subscription) > 0 or self._has_failed()

    def _has_failed(self) -> bool:
        """Whether something is to be tried again, now or later."""
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
    """Gets what none of the others wants."""

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
