"""The execution bus in the store itself: events are read from their table, none are copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from holdfast.bus.envelope import Envelope, read_envelope
from holdfast.bus.event_log import read_page
from holdfast.bus.execution_bus import (
    PARTITIONS,
    RESERVED,
    Channel,
    ExecutionBus,
    Health,
    MessageBatch,
    PartitionShare,
    Subscription,
    check_group,
)
from holdfast.bus.position import Position, read_position
from holdfast.engine.engine import EngineOwner, engine_of
from holdfast.errors import InvalidInput, StoreError
from holdfast.store.database import Transaction

T = TypeVar("T")

# Hints are rarer than events, so a waiting consumer looks again after this many seconds.
LOOK_SECONDS = 0.02
# Numbers that were given and are not committed yet are looked for among the newest of this many.
NEWEST_NUMBERS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """The versions of the partitions' positions when they were read, and their next position."""

    versions: tuple[tuple[int, int], ...]
    position: Position


class SqlBus(ExecutionBus):
    """The bus that needs nothing but the store; each group has a position for each partition.

    A consumer that waits for a message looks again after `look` seconds, with or without a hint.
    """

    def __init__(
        self, store: EngineOwner, *, partitions: int = PARTITIONS, look: float = LOOK_SECONDS
    ) -> None:
        engine = engine_of(store)
        super().__init__(partitions)
        self._look = look
        self._engine = engine
        self._database = engine.database
        self._kept_connection = engine.database.connect()
        self._lock = engine.threads.lock()
        self._hinted = engine.threads.event()
        self._unsubscribe: Callable[[], None] = engine.notifier.subscribe(self._hinted.set)

    def _publish(
        self, channel: Channel, texts: Sequence[tuple[Envelope, str]], connection: object
    ) -> None:
        rows = [(envelope.message_id, text) for envelope, text in texts]

        def publish(tx: Transaction) -> None:
            tx.run("enlist")
            tx.run("publish_messages", rows=rows, channel=channel.value)

        if connection is not None:
            publish(self._database.join(connection))
            return
        self._write(publish)
        self._engine.notifier.notify()

    def subscribe(self, subscription: Subscription) -> None:
        check_group(subscription.group)
        new = subscription.from_now and not self._positions(subscription)
        start = self._newest_position(subscription.channel) if new else Position()

        def begin(tx: Transaction) -> None:
            tx.run(
                "insert_positions",
                rows=[(each,) for each in range(self.partitions)],
                passed=start.passed,
                holes=start.write_holes(),
                **_position_key(subscription),
            )
            self._refuse_partitions(len(tx.read("positions_of", **_position_key(subscription))))

        self._write(begin)

    def _newest_position(self, channel: Channel) -> Position:
        """The position after all committed messages, with holes for those not committed yet."""
        newest = self._database.view(lambda tx: tx.read("newest_number"))[0]
        number = newest["event" if channel is Channel.EVENTS else "message"]
        before = Position(passed=max(0, number - NEWEST_NUMBERS))
        return read_page(self._database, channel, before, NEWEST_NUMBERS).position

    def forget(self, subscription: Subscription) -> None:
        self._write(lambda tx: tx.run("remove_positions", **_position_key(subscription)))

    def fetch(self, share: PartitionShare, *, count: int, wait: float = 0.0) -> list[MessageBatch]:
        self._hinted.clear()
        found = self._fetch(share, count)
        if not found and wait > 0:
            self._hinted.wait(min(wait, self._look))
            found = self._fetch(share, count)
        return found

    def _fetch(self, share: PartitionShare, count: int) -> list[MessageBatch]:
        positions = self._positions(share.subscription)
        if not positions:
            self.subscribe(share.subscription)
            positions = self._positions(share.subscription)
        held = [(*positions[each], each) for each in share.partitions if each in positions]
        held.sort(key=lambda each: (each[0].passed, each[0].ranges, each[2]))
        # Partitions at the same position, as those of one consumer mostly are, are read at once.
        return [
            batch
            for position, members in groupby(held, key=lambda each: each[0])
            if (batch := self._read(share, position, list(members), count)) is not None
        ]

    def _read(
        self,
        share: PartitionShare,
        position: Position,
        members: list[tuple[Position, int, int]],
        count: int,
    ) -> MessageBatch | None:
        page = read_page(self._database, share.subscription.channel, position, count)
        if page.position == position:
            return None
        own = {partition for _, _, partition in members}
        batch = MessageBatch(
            share=share,
            envelopes=tuple(each for each in page.envelopes if self.partition_of(each) in own),
            receipt=Receipt(
                versions=tuple((partition, version) for _, version, partition in members),
                position=page.position,
            ),
        )
        if not batch.envelopes:
            self.acknowledge(batch)
            return None
        return batch

    def recover(self, share: PartitionShare, *, count: int) -> list[MessageBatch]:  # noqa: ARG002 - nothing to claim
        """Nothing: `fetch` gives everything that was not acknowledged."""
        return []

    def acknowledge(self, batch: MessageBatch) -> bool:
        receipt = batch.receipt
        if not isinstance(receipt, Receipt):
            raise InvalidInput("batch", "was fetched from another bus")
        moved = self._write(
            lambda tx: tx.write(
                "move_positions",
                rows=receipt.versions,
                passed=receipt.position.passed,
                holes=receipt.position.write_holes(),
                **_position_key(batch.share.subscription),
            )
        )
        return len(moved) == len(receipt.versions)

    def rewind(self, subscription: Subscription, since: int) -> None:
        channel = subscription.channel.value
        found = self._database.view(
            lambda tx: tx.read("number_since", channel=channel, moment=since)
        )
        number = found[0]["number"]
        self._write(
            lambda tx: tx.write("set_positions", passed=number, **_position_key(subscription))
        )

    def lag(self, subscription: Subscription) -> int:
        positions = self._positions(subscription)
        least = min((position.floor for position, _ in positions.values()), default=0)
        channel = subscription.channel.value
        counted = self._database.view(
            lambda tx: tx.read("count_after", channel=channel, passed=least)
        )
        return int(counted[0]["count"])

    def groups(self, channel: Channel) -> list[str]:
        rows = self._database.view(lambda tx: tx.read("groups_of", channel=channel.value))
        return [row["consumers"] for row in rows if not row["consumers"].startswith(RESERVED)]

    def latest(self, channel: Channel, count: int) -> list[Envelope]:
        if channel is Channel.EVENTS:
            newest = self._database.view(lambda tx: tx.read("newest_number"))[0]["event"]
            before = Position(passed=max(0, newest - count))
            return list(read_page(self._database, channel, before, count).envelopes)
        rows = self._database.view(
            lambda tx: tx.read("latest_messages", channel=channel.value, count=count)
        )
        return [read_envelope(row["envelope"]) for row in reversed(rows)]

    def oldest(self, channel: Channel) -> int | None:  # noqa: ARG002 - it is all in the store
        return None

    def trim(self, channel: Channel, *, groups: Sequence[str] = (), before: int = 0) -> int:
        if not set(self.groups(channel)).issuperset(groups):
            return 0
        name = channel.value
        return len(self._write(lambda tx: tx.write("trim_messages", channel=name, before=before)))

    def health(self) -> Health:
        begun = self._engine.clock.monotonic()
        try:
            self._database.view(lambda tx: tx.read("now"))
        except StoreError as error:
            return Health(
                ok=False, latency=self._engine.clock.monotonic() - begun, detail=str(error)
            )
        return Health(ok=True, latency=self._engine.clock.monotonic() - begun)

    def close(self) -> None:
        self._unsubscribe()
        self._hinted.set()

    def _positions(self, subscription: Subscription) -> dict[int, tuple[Position, int]]:
        rows = self._database.view(
            lambda tx: tx.read("positions_of", **_position_key(subscription))
        )
        return {
            row["place"]: (read_position(row["passed"], row["holes"]), row["version"])
            for row in rows
        }

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """Write something that may be written twice, as happens after a lost connection."""
        with self._lock:
            return self._kept_connection.run(
                lambda connection: work(self._database.join(connection))
            )


def _position_key(subscription: Subscription) -> dict[str, str]:
    return {"channel": subscription.channel.value, "consumers": subscription.group}
