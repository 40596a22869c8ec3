"""Removes what was kept long enough: messages, the notes that they were done, and ended runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from holdfast.bus.consumer_groups import groups_elsewhere
from holdfast.bus.execution_bus import Channel, ExecutionBus
from holdfast.bus.periodic_loop import Rounds, Turn
from holdfast.clock import MICROSECONDS
from holdfast.engine.engine import Engine
from holdfast.engine.input.validation import number
from holdfast.engine.surroundings.removal import KINDS, Removed
from holdfast.settings import KeepTimes

WEEK = 7 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionOptions:
    """How long things are kept, in seconds.

    - `keep`: messages that all have acknowledged, and notes of messages that were done
    - `runs`: runs that have ended, and tasks without one, with all their events
    - `every`: the time between two looks
    - `count`: how many notes are removed in one transaction
    - `ttl`: after how many seconds of silence another process goes on
    """

    keep: float = WEEK
    runs: float = KeepTimes.runs
    every: float = 3_600.0
    count: int = 1_000
    ttl: float = 30.0

    def __post_init__(self) -> None:
        number("count", self.count, least=1)


class Retention(Rounds):
    """Start one with each process: the one that holds the lease removes, the others wait."""

    def __init__(
        self,
        engine: Engine,
        buses: Sequence[ExecutionBus],
        options: RetentionOptions | None = None,
    ) -> None:
        self._options = options or RetentionOptions()
        self._buses = buses
        self._place = Turn(engine, "bus/retention", ttl=self._options.ttl, begun=self._begin)
        super().__init__(engine, "retention", self._place)
        self._standing = engine.database.connect()
        self._life.callback(self._standing.close)
        self._looked: float | None = None
        self._walk: Iterator[Removed] | None = None

    def step(self, wait: float = 0.0) -> int:  # noqa: ARG002 - it does not wait by itself
        """Remove what is due, some at a time; how much that was."""
        if not self._place.hold() or not self._due():
            return 0
        before = self._engine.now() - round(self._options.keep * MICROSECONDS)
        trimmed = sum(
            self._trim(bus, channel, before) for bus in self._buses for channel in Channel
        )
        purged = self._purge(min([before, *self._oldest()]))
        ended = self._engine.now() - round(self._options.runs * MICROSECONDS)
        removed = self._remove(ended)
        forgotten = self._engine.removals.forget(ended, self._options.count)
        if max(purged, forgotten) < self._options.count and not removed:
            self._looked = self._engine.clock.monotonic()
        return trimmed + purged + removed + forgotten

    def _begin(self) -> None:
        self._looked = None
        self._walk = None

    def _remove(self, before: int) -> int:
        """Remove the next page of which anything can go; nothing behind the last one."""
        if self._walk is None:
            removals = self._engine.removals
            self._walk = chain.from_iterable(removals.walk(kind, before) for kind in KINDS)
        for page in self._walk:
            if page.gone or not self._place.hold():
                return len(page.gone)
        self._walk = None
        return 0

    def _due(self) -> bool:
        now = self._engine.clock.monotonic()
        return self._looked is None or now - self._looked >= self._options.every

    def _trim(self, bus: ExecutionBus, channel: Channel, before: int) -> int:
        groups = groups_elsewhere(self._engine, bus, channel) if bus.elsewhere else ()
        return bus.trim(channel, groups=groups, before=before)

    def _oldest(self) -> list[int]:
        """When the oldest messages were sent that somebody may still be given."""
        kept = [bus.oldest(channel) for bus in self._buses for channel in Channel]
        rows = self._engine.database.view(lambda tx: tx.read("oldest_unread"))
        return [moment for moment in (*kept, rows[0]["at"]) if moment is not None]

    def _purge(self, before: int) -> int:
        with self._standing.begin() as connection:
            tx = self._engine.database.join(connection)
            return len(tx.write("purge_processed", before=before, count=self._options.count))
