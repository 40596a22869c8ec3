"""A bus of each kind with a store beside it, and messages to send over it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import (
    Channel,
    ExecutionBus,
    MessageBatch,
    PartitionShare,
    Subscription,
)
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.trace import derive_trace_id
from holdfast.settings import Settings
from tests.contract.raw_store import raw
from tests.engines import opened

RUNS = tuple(f"r_{number:020}" for number in range(6))
COMMANDS = Subscription(channel=Channel.COMMANDS, group="service")
PARTITIONS = 4


TABLES = ("message", "position", "processed_message", "delivery", "lease")


@dataclass(frozen=True, kw_only=True)
class World:
    """One bus, the engine of the store beside it, and for Redis where it keeps its keys."""

    engine: Engine
    bus: ExecutionBus
    client: Any = None
    prefix: str = ""

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.engine.clock, ManualClock)
        return self.engine.clock

    def lose(self) -> None:
        """Everything that Redis has of this bus, as if it began anew."""
        assert self.client is not None
        for key in self.client.keys(f"{{{self.prefix}}}*"):
            self.client.delete(key)

    def clean(self) -> None:
        """Leave nothing for the next test but the events of the store, which stay."""
        if self.client is not None:
            self.lose()
        with raw(self.engine.settings.url) as run:
            for table in TABLES:
                run(f"DELETE FROM holdfast_{table}")  # noqa: S608 - the name of a table of the store


def roomy(url: str) -> Settings:
    """Settings with a connection for each of many writers that are in a transaction at once."""
    return Settings(url=url, connections=32)


@contextmanager
def sql_world(url: str, clock: ManualClock) -> Iterator[World]:
    with opened(url, clock=clock, settings=roomy(url)) as engine:
        bus = SqlBus(engine, partitions=PARTITIONS)
        yield World(engine=engine, bus=bus)
        bus.close()


@contextmanager
def redis_world(engine: Engine, server: str) -> Iterator[World]:
    prefix = f"test-{uuid.uuid4().hex}"
    with redis.Redis.from_url(server) as client:
        bus = RedisBus(server, partitions=PARTITIONS, prefix=prefix)
        world = World(engine=engine, bus=bus, client=client, prefix=prefix)
        yield world
        bus.close()
        world.lose()


def message(name: str, run: str = RUNS[0], *, kind: str = "run.start") -> Envelope:
    return Envelope(
        message_id=name,
        trace_id=derive_trace_id(run),
        run_id=run,
        type=kind,
        created_at=1_000_000,
        payload=name,
    )


def share(
    *partitions: int, subscription: Subscription = COMMANDS, consumer: str = "service-1"
) -> PartitionShare:
    held = partitions or tuple(range(PARTITIONS))
    return PartitionShare(subscription=subscription, consumer=consumer, partitions=held)


def names(batches: list[MessageBatch]) -> list[str]:
    return [each.message_id for batch in batches for each in batch.envelopes]


def take_all(bus: ExecutionBus, taken: PartitionShare) -> list[str]:
    """Read and acknowledge until there is nothing more."""
    found: list[str] = []
    while batches := bus.fetch(taken, count=100):
        found += names(batches)
        for batch in batches:
            assert bus.acknowledge(batch)
    return found
