"""The engine as a consumer: carries out the commands, and takes the results, that a bus brings."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bus.channel import Channel
from holdfast.bus.claims import claim_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.execution_bus import ExecutionBus, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.groups import group_of, subscribe
from holdfast.bus.handler import Handler
from holdfast.bus.orders import command_handler, result_handler
from holdfast.bus.parked import Parked
from holdfast.bus.rounds import Rounds
from holdfast.engine.engine import Engine

GROUP = "engine"
HEARD = (Channel.COMMANDS, Channel.RESULTS)
_TTL = 15.0
# A consumer looks at each commit of others, and has leases to keep: not where nothing comes.
QUIET = 10.0


class Hearing(Rounds):
    """Start one with each process: those of one machine take turns, machines share the work.

    A bus that is away is tried again and again, and keeps nobody from starting.
    """

    waits = True

    def __init__(self, engine: Engine, bus: ExecutionBus, channel: Channel) -> None:
        super().__init__(engine, f"hearing {channel.value}")
        self._bus = bus
        self._subscription = Subscription(channel=channel, group=GROUP)
        self._handlers = _handlers(engine, bus, channel)
        self._parked = Parked(engine)
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
        if self._consumer is None and not self._is_awaited():
            self._stopped.wait(wait)
            return 0
        if self._consumer is None:
            self._consumer = self._listen()
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
        """Whether something is to be tried again."""
        channel = self._subscription.channel.value
        return any(
            waiting > parked
            for (each, handler), (waiting, parked) in self._parked.count().items()
            if each == channel and group_of(handler) == GROUP
        )

    def _listen(self) -> Consumer:
        self._last = self._engine.clock.monotonic()
        options = ConsumerOptions(ttl=_TTL)
        return Consumer(self._engine, self._bus, self._subscription, self._handlers, options)

    def _rest(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


def _handlers(engine: Engine, bus: ExecutionBus, channel: Channel) -> Sequence[Handler]:
    streams = bus if isinstance(bus, RedisBus) else None
    if channel is Channel.RESULTS:
        return [result_handler(engine, streams)]
    claims = [] if streams is None else [claim_handler(engine, streams)]
    return [command_handler(engine), *claims]
