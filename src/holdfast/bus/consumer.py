"""A consumer of a group: takes its share of the partitions, and does each message once."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from holdfast.bus.channel import slots_of
from holdfast.bus.execution_bus import Batch, ExecutionBus, Seat, Subscription
from holdfast.bus.groups import subscribe
from holdfast.bus.handler import Handler
from holdfast.bus.inbox import Inbox
from holdfast.bus.rounds import Rounds
from holdfast.bus.seats import TTL, Seats
from holdfast.engine.engine import Engine
from holdfast.model.retry import RetryPolicy
from holdfast.model.text import clean_name

RETRY = RetryPolicy(max_attempts=5, backoff=1.0, backoff_max=60.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumerOptions:
    """How a consumer goes about it.

    - `name`: stays the same from one start to the next; the group, the host and `slot` unless given
    - `batch`: how many messages are done in one transaction at most
    - `retry`: how often a message is tried before it is parked, and how long it waits in between
    - `ttl`: after how many seconds of silence others take its partitions
    """

    name: str | None = None
    slot: int = 0
    batch: int = 200
    retry: RetryPolicy = RETRY
    ttl: float = TTL


class Consumer:
    """`with Consumer(…):` consumes in a thread of its own until the end of the block."""

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
        self._seats = Seats(engine, subscription, self.name, ttl=chosen.ttl)
        self._inbox = Inbox(engine, subscription, handlers, chosen.retry)
        self._settled: frozenset[int] = frozenset()
        self._rounds = Rounds(engine, f"holdfast-{self.name}", self.step, pauses=False)
        subscribe(engine, bus, subscription)

    def take_share(self) -> tuple[int, ...]:
        """The partitions that are this consumer's, those included that it takes only now."""
        return self._seats.look(self._bus.partitions)

    def step(self, wait: float = 0.0) -> int:
        """Look once at what there is to do; how much was done."""
        held = self.take_share()
        self._settled &= frozenset(held)
        seat = Seat(subscription=self._subscription, consumer=self.name, partitions=held)
        try:
            done = self._recover(seat)
            slots = [slot for each in held for slot in slots_of(each, self._bus.partitions)]
            done += self._inbox.try_again(slots) if held else 0
            # Who holds nothing has nothing to wait for on the bus.
            pause = 0.0 if done else wait
            if not held:
                self._rounds.stopped.wait(pause)
                return done
            return done + self._settle(self._bus.fetch(seat, count=self._batch, wait=pause))
        except BaseException:
            # Whatever of it was not acknowledged is taken up again.
            self._settled = frozenset()
            raise

    def drain(self) -> int:
        """Step until there is nothing left that could be done now."""
        total = 0
        while done := self.step():
            total += done
        return total

    def start(self) -> None:
        self._rounds.start()

    def close(self) -> None:
        """End after the batch under way, and let others have the partitions at once."""
        self._rounds.close()
        self._seats.close()
        self._inbox.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self, seat: Seat) -> int:
        """First what others, or this one before it was restarted, had in their hands."""
        new = tuple(each for each in seat.partitions if each not in self._settled)
        done = 0
        if new:
            fresh = Seat(subscription=seat.subscription, consumer=seat.consumer, partitions=new)
            while batches := self._bus.recover(fresh, count=self._batch):
                done += self._settle(batches)
            self._settled |= frozenset(new)
        return done

    def _settle(self, batches: Sequence[Batch]) -> int:
        for batch in batches:
            self._inbox.take(batch.envelopes)
            self._bus.acknowledge(batch)
        return sum(len(batch.envelopes) for batch in batches)
