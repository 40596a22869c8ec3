"""A consumer of a group: takes its share of the partitions, and does each message once."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.bus.consumer_groups import subscribe
from holdfast.bus.execution_bus import Batch, ExecutionBus, Seat, Subscription, slots_of
from holdfast.bus.handler import Handler
from holdfast.bus.inbox import Inbox
from holdfast.bus.partition_leases import TTL, Seats
from holdfast.bus.periodic_loop import Rounds
from holdfast.engine.engine import Engine
from holdfast.engine.input.validation import number
from holdfast.model.retry import RetryPolicy
from holdfast.model.text import clean_name

RETRY = RetryPolicy(max_attempts=5, backoff=1.0, backoff_max=60.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumerOptions:
    """How a consumer goes about it.

    - `name`: stays the same from one start to the next; the group, the host and `slot` unless given
    - `batch`: how many messages of a partition are done at once at most
    - `retry`: how often a message is tried before it is parked, and how long it waits in between
    - `ttl`: after how many seconds of silence others take its partitions
    """

    name: str | None = None
    slot: int = 0
    batch: int = 200
    retry: RetryPolicy = RETRY
    ttl: float = TTL

    def __post_init__(self) -> None:
        number("batch", self.batch, least=1)


class Consumer(Rounds):
    """`with Consumer(…):` consumes in a thread of its own until the end of the block."""

    waits = True

    def __init__(
        self,
        engine: Engine,
        bus: ExecutionBus,
        subscription: Subscription,
        handlers: Sequence[Handler],
        options: ConsumerOptions | None = None,
    ) -> None:
        chosen = options or ConsumerOptions()
        own = f"{subscription.group}-{socket.gethostname()}-{chosen.slot}"
        self.name = clean_name("name", chosen.name or own)
        self._bus = bus
        self._subscription = subscription
        self._batch = chosen.batch
        self._seats = Seats(engine, subscription, self.name, place=bus.place, ttl=chosen.ttl)
        self._inbox = Inbox(engine, subscription, handlers, chosen.retry, keep=self._seats.keep)
        super().__init__(engine, self.name)
        self._settled: frozenset[int] = frozenset()
        self._life.callback(self._inbox.close)
        self._life.callback(self._seats.close)
        subscribe(engine, bus, subscription)

    def take_share(self) -> tuple[int, ...]:
        """The partitions that are this consumer's, those included that it takes only now."""
        return self._seats.look(self._bus.partitions)

    def step(self, wait: float = 0.0) -> int:
        """Look once at what there is to do; how much was done."""
        held = self.take_share()
        if not held:
            self._stopped.wait(wait)
            return 0
        # Nothing is settled until this is over: after an error all of it is taken up again.
        settled, self._settled = self._settled, frozenset()
        seat = Seat(subscription=self._subscription, consumer=self.name, partitions=held)
        done = self._take_up(seat, settled)
        done += self._inbox.try_again(
            slot for each in held for slot in slots_of(each, self._bus.partitions)
        )
        pause = 0.0 if done else wait
        done += self._settle(self._bus.fetch(seat, count=self._batch, wait=pause))
        self._settled = frozenset(held)
        return done

    def _take_up(self, seat: Seat, settled: frozenset[int]) -> int:
        """First what others, or this one before it was restarted, had in their hands."""
        new = tuple(each for each in seat.partitions if each not in settled)
        done = 0
        while new and (
            batches := self._bus.recover(replace(seat, partitions=new), count=self._batch)
        ):
            done += self._settle(batches)
        return done

    def _settle(self, batches: Sequence[Batch]) -> int:
        envelopes = [envelope for batch in batches for envelope in batch.envelopes]
        self._inbox.take(envelopes)
        for batch in batches:
            self._bus.acknowledge(batch)
        return len(envelopes)
