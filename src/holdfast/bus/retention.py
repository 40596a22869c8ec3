"""Retention: the removal of messages, notes of handled messages, and runs that ended long ago."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from holdfast.bus.consumer_groups import list_external_groups
from holdfast.bus.execution_bus import Channel, ExecutionBus
from holdfast.bus.periodic_loop import LeaderLease, PeriodicLoop
from holdfast.clock import MICROSECONDS
from holdfast.engine.engine import EngineOwner, engine_of
from holdfast.engine.input.validation import number
from holdfast.engine.surroundings.removal import KINDS, RemovedPage
from holdfast.settings import KeepTimes

WEEK = 7 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionOptions:
    """The times for which things are kept, in seconds.

    - `keep`: messages that all groups have acknowledged, and notes of handled messages
    - `runs`: runs that have ended, and tasks without a run, with all their events
    - `every`: the time between two removals
    - `count`: the most notes that are removed in one transaction
    - `ttl`: the seconds of silence after which another process goes on
    """

    keep: float = WEEK
    runs: float = KeepTimes.runs
    every: float = 3_600.0
    count: int = 1_000
    ttl: float = 30.0

    def __post_init__(self) -> None:
        number("count", self.count, least=1)


class Retention(PeriodicLoop):
    """The loop of removals; each process starts one, and the one that holds the lease removes."""

    def __init__(
        self,
        store: EngineOwner,
        buses: Sequence[ExecutionBus],
        options: RetentionOptions | None = None,
    ) -> None:
        engine = engine_of(store)
        self._options = options or RetentionOptions()
        self._buses = buses
        self._leader_lease = LeaderLease(
            engine, "bus/retention", ttl=self._options.ttl, on_begin=self._start_over
        )
        super().__init__(engine, "retention", self._leader_lease)
        self._kept_connection = engine.database.connect()
        self._finished_at: float | None = None
        self._removed_pages: Iterator[RemovedPage] | None = None

    def step(self, wait: float = 0.0) -> int:  # noqa: ARG002 - it does not wait by itself
        """Remove what is due, some at a time; the result is how much was removed."""
        if not self._leader_lease.is_leader() or not self._is_due():
            return 0
        before = self._engine.now() - round(self._options.keep * MICROSECONDS)
        trimmed = sum(
            self._trim(bus, channel, before) for bus in self._buses for channel in Channel
        )
        purged = self._purge(min([before, *self._oldest()]))
        ended = self._engine.now() - round(self._options.runs * MICROSECONDS)
        removed = self._remove(ended)
        forgotten = self._engine.removals.forget_tombstones(ended, self._options.count)
        if max(purged, forgotten) < self._options.count and not removed:
            self._finished_at = self._engine.clock.monotonic()
        return trimmed + purged + removed + forgotten

    def _start_over(self) -> None:
        self._finished_at = None
        self._removed_pages = None

    def _remove(self, before: int) -> int:
        """Remove the next page that has anything to remove; 0 after the last page."""
        if self._removed_pages is None:
            removals = self._engine.removals
            self._removed_pages = chain.from_iterable(
                removals.remove_all(kind, before) for kind in KINDS
            )
        for page in self._removed_pages:
            if page.gone or not self._leader_lease.is_leader():
                return len(page.gone)
        self._removed_pages = None
        return 0

    def _is_due(self) -> bool:
        now = self._engine.clock.monotonic()
        return self._finished_at is None or now - self._finished_at >= self._options.every

    def _trim(self, bus: ExecutionBus, channel: Channel, before: int) -> int:
        groups = list_external_groups(self._engine, bus, channel) if bus.is_external else ()
        return bus.trim(channel, groups=groups, before=before)

    def _oldest(self) -> list[int]:
        """The times of the oldest messages that may still be delivered."""
        kept = [bus.oldest(channel) for bus in self._buses for channel in Channel]
        rows = self._engine.database.view(lambda tx: tx.read("oldest_unread"))
        return [moment for moment in (*kept, rows[0]["at"]) if moment is not None]

    def _purge(self, before: int) -> int:
        with self._kept_connection.begin() as connection:
            tx = self._engine.database.join(connection)
            return len(tx.write("purge_processed", before=before, count=self._options.count))
