"""Consumers: each takes its share of a group's partitions, and handles each message once."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.bus.consumer_groups import subscribe
from holdfast.bus.execution_bus import (
    ExecutionBus,
    MessageBatch,
    PartitionShare,
    Subscription,
    slots_of,
)
from holdfast.bus.handler import Handler
from holdfast.bus.inbox import Inbox
from holdfast.bus.parked_messages import TRIES_BEFORE_PARKED
from holdfast.bus.partition_leases import TTL, PartitionLeases
from holdfast.bus.periodic_loop import PeriodicLoop
from holdfast.engine.engine import EngineOwner, engine_of
from holdfast.engine.input.validation import number
from holdfast.model.retry import RetryPolicy
from holdfast.model.text import clean_name


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumerOptions:
    """The options of a consumer.

    - `name`: stays the same from one start to the next; the group, the host and `slot` unless given
    - `batch`: the most messages of a partition that are handled at once
    - `retry`: the tries of a message before it is parked, and the waits between them
    - `ttl`: the seconds of silence after which others take its partitions
    """

    name: str | None = None
    slot: int = 0
    batch: int = 200
    retry: RetryPolicy = TRIES_BEFORE_PARKED
    ttl: float = TTL

    def __post_init__(self) -> None:
        number("batch", self.batch, least=1)


class Consumer(PeriodicLoop):
    """`with Consumer(…):` consumes in a thread of its own until the end of the block."""

    waits_in_step = True

    def __init__(
        self,
        store: EngineOwner,
        bus: ExecutionBus,
        subscription: Subscription,
        handlers: Sequence[Handler],
        options: ConsumerOptions | None = None,
    ) -> None:
        engine = engine_of(store)
        chosen = options or ConsumerOptions()
        own = f"{subscription.group}-{socket.gethostname()}-{chosen.slot}"
        self.name = clean_name("name", chosen.name or own)
        self._bus = bus
        self._subscription = subscription
        self._batch = chosen.batch
        self._partition_leases = PartitionLeases(
            engine, subscription, self.name, key_prefix=bus.key_prefix, ttl=chosen.ttl
        )
        self._inbox = Inbox(
            engine,
            subscription,
            handlers,
            chosen.retry,
            renew_leases=self._partition_leases.renew_when_due,
        )
        super().__init__(engine, self.name)
        self._settled_partitions: frozenset[int] = frozenset()
        self._closing.callback(self._partition_leases.close)
        subscribe(engine, bus, subscription)

    def take_share(self) -> tuple[int, ...]:
        """Take this consumer's share of the partitions, and return all that it has now."""
        return self._partition_leases.update_share(self._bus.partitions)

    def step(self, wait: float = 0.0) -> int:
        """Handle the messages there are now; the result is their number."""
        held = self.take_share()
        if not held:
            self._stopped.wait(wait)
            return 0
        # Empty until the step is over: after an error all partitions are recovered again.
        settled, self._settled_partitions = self._settled_partitions, frozenset()
        share = PartitionShare(subscription=self._subscription, consumer=self.name, partitions=held)
        done = self._recover_new_partitions(share, settled)
        done += self._inbox.retry_due(
            slot for each in held for slot in slots_of(each, self._bus.partitions)
        )
        pause = 0.0 if done else wait
        done += self._handle_batches(self._bus.fetch(share, count=self._batch, wait=pause))
        self._settled_partitions = frozenset(held)
        return done

    def _recover_new_partitions(self, share: PartitionShare, settled: frozenset[int]) -> int:
        """Handle messages of new partitions that were delivered before and never acknowledged."""
        new = tuple(each for each in share.partitions if each not in settled)
        done = 0
        while new and (
            batches := self._bus.recover(replace(share, partitions=new), count=self._batch)
        ):
            done += self._handle_batches(batches)
        return done

    def _handle_batches(self, batches: Sequence[MessageBatch]) -> int:
        envelopes = [envelope for batch in batches for envelope in batch.envelopes]
        self._inbox.handle_once(envelopes)
        for batch in batches:
            self._bus.acknowledge(batch)
        return len(envelopes)
