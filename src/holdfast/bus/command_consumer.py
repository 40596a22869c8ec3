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
from holdfast.bus.periodic_loop import Rounds
from holdfast.engine.engine import Engine

logger = logging.getLogger(__name__)

# How often it is asked again: a Redis may be lost with the name on it, or given free.
SLOWLY = 30.0


class Ownership:
    """Whether a bus is this store's to hear: its own always is, a Redis is the first one's."""

    def __init__(self, engine: Engine, bus: ExecutionBus) -> None:
        self._engine = engine
        self._bus = bus
        self._lock = engine.threads.lock()
        self._asked: float | None = None
        self._stands = True

    def stands(self) -> bool:
        if not isinstance(self._bus, RedisBus):
            return True
        with self._lock:
            now = self._engine.clock.monotonic()
            if self._asked is None or now - self._asked >= SLOWLY:
                self._ask(self._bus)
                self._asked = now
            return self._stands

    def _ask(self, bus: RedisBus) -> None:
        stood, self._stands = self._stands, bus.owner(self._engine.store) == self._engine.store
        if stood and not self._stands:
            logger.warning(
                "another store hears the commands and results on this Redis, and this one does not:"
                " give this one another Redis, or hear from a program with RedisBus(url, prefix=…);"
                " if that store is no more, delete the key %s",
                bus.owner_key,
            )


# Programs that hear by themselves are of the group `engine`, with other handlers.
GROUP = "holdfast"
HEARD = (Channel.COMMANDS, Channel.RESULTS)
_TTL = 15.0
# A consumer looks at each commit of others, and has leases to keep: not where nothing comes.
QUIET = 10.0


class Hearing(Rounds):
    """Start one with each process: those of one machine take turns, machines share the work.

    A bus that is away is tried again and again, and keeps nobody from starting. What was published
    before anybody heard is not carried out.
    """

    waits = True

    def __init__(
        self,
        engine: Engine,
        bus: ExecutionBus,
        channel: Channel,
        ownership: Ownership | None = None,
    ) -> None:
        super().__init__(engine, f"hearing {channel.value}")
        self._bus = bus
        self._ownership = ownership or Ownership(engine, bus)
        self._subscription = Subscription(channel=channel, group=GROUP, from_now=True)
        self._handlers = _handlers(engine, bus, channel)
        self._subscribed = False
        self._consumer: Consumer | None = None
        self._last = engine.clock.monotonic()
        self._life.callback(self._rest)

    @property
    def listens(self) -> bool:
        """Whether it has a share of what comes; where nothing has come for long, it only looks."""
        return self._consumer is not None

    def step(self, wait: float = 0.0) -> int:
        """Do what has come; how much that was."""
        if not self._ownership.stands():
            self._rest()
        elif self._consumer is None and self._is_awaited():
            self._consumer = self._listen()
        if self._consumer is None:
            self._stopped.wait(wait)
            return 0
        done = self._consumer.step(wait)
        now = self._engine.clock.monotonic()
        if done:
            self._last = now
        elif now >= self._last + QUIET and not self._is_awaited():
            self._rest()
        return done

    def _is_awaited(self) -> bool:
        if not self._subscribed:
            # By itself first: a bus that is away leaves nothing open behind it.
            subscribe(self._engine, self._bus, self._subscription)
            self._subscribed = True
        # Beside the store one waits on the wire, and costs the store nothing.
        return self._bus.elsewhere or self._bus.lag(self._subscription) > 0 or self._has_failed()

    def _has_failed(self) -> bool:
        """Whether something is to be tried again, now or later."""
        names = [f"{GROUP}/{each.name}" for each in (UNREADABLE_HANDLER, *self._handlers)]
        channel = self._subscription.channel.value
        return bool(
            self._engine.database.view(
                lambda tx: tx.read("some_delivery", channel=channel, handlers=names)
            )
        )

    def _listen(self) -> Consumer:
        self._last = self._engine.clock.monotonic()
        options = ConsumerOptions(ttl=_TTL)
        return Consumer(self._engine, self._bus, self._subscription, self._handlers, options)

    def _rest(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Others(Handler):
    """Gets what none of the others wants."""

    known: frozenset[str]

    def wants(self, envelope: Envelope) -> bool:
        return envelope.type not in self.known


def _handlers(engine: Engine, bus: ExecutionBus, channel: Channel) -> Sequence[Handler]:
    streams = bus if isinstance(bus, RedisBus) else None
    if channel is Channel.RESULTS:
        return _and_others([result_handler(engine, streams)])
    claims = [] if streams is None else [claim_handler(engine, streams)]
    return _and_others([command_handler(engine), *claims])


def _and_others(handlers: Sequence[Handler]) -> Sequence[Handler]:
    known = frozenset().union(*(each.types or () for each in handlers))

    def refuse(envelope: Envelope, _: object) -> None:
        reason = f"{envelope.type!r} is nothing that is heard here; heard are"
        raise Park(f"{reason} {', '.join(sorted(known))}")

    return [*handlers, _Others(name="others", handle=refuse, known=known)]
