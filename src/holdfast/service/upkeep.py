"""What a process of Holdfast does beside its work: relays, removes the old, hears if told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from holdfast.bus.command_consumer import HEARD, Hearing, Ownership
from holdfast.bus.execution_bus import ExecutionBus
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.relay import Relay
from holdfast.bus.retention import Retention, RetentionOptions
from holdfast.engine.engine import Engine
from holdfast.settings import Keep

# Who publishes in a transaction of its own tells nobody of it: it is found by looking.
LOOK = 0.25


@contextmanager
def upkeep(
    engine: Engine, keep: Keep, redis: str | None = None, *, hear: bool = False
) -> Iterator[None]:
    """Take part until the end of the block; of all processes one does each of it, by a lease.

    With `hear` what comes over the buses is carried out here, whoever wrote it.
    """
    with ExitStack() as stack:
        buses: list[ExecutionBus] = [SqlBus(engine, look=LOOK)]
        stack.callback(buses[0].close)
        if redis:
            streams = RedisBus(redis)
            stack.callback(streams.close)
            stack.enter_context(Relay(engine, streams))
            buses.append(streams)
        for bus in buses if hear else ():
            ownership = Ownership(engine, bus)
            for channel in HEARD:
                stack.enter_context(Hearing(engine, bus, channel, ownership))
        stack.enter_context(Retention(engine, buses, RetentionOptions(runs=keep.runs)))
        yield
