"""The engine as a consumer: carries out the commands, and takes the results, that a bus brings."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bus.channel import Channel
from holdfast.bus.claims import claim_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.execution_bus import ExecutionBus, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.groups import subscribe
from holdfast.bus.handler import Handler
from holdfast.bus.orders import command_handler, result_handler
from holdfast.bus.rounds import Rounds
from holdfast.engine.engine import Engine

GROUP = "engine"
HEARD = (Channel.COMMANDS, Channel.RESULTS)
# Its leases are written by every process, also where no message ever comes.
_TTL = 15.0


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
        self._consumer: Consumer | None = None

    def step(self, wait: float = 0.0) -> int:
        """Do what has come; how much that was."""
        if self._consumer is None:
            self._consumer = self._begin()
        return self._consumer.step(wait)

    def _begin(self) -> Consumer:
        # By itself first: a bus that is away leaves nothing open behind it.
        subscribe(self._engine, self._bus, self._subscription)
        options = ConsumerOptions(ttl=_TTL)
        made = Consumer(self._engine, self._bus, self._subscription, self._handlers, options)
        self._life.callback(made.close)
        return made


def _handlers(engine: Engine, bus: ExecutionBus, channel: Channel) -> Sequence[Handler]:
    streams = bus if isinstance(bus, RedisBus) else None
    if channel is Channel.RESULTS:
        return [result_handler(engine, streams)]
    claims = [] if streams is None else [claim_handler(engine, streams)]
    return [command_handler(engine), *claims]
