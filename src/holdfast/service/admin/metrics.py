"""Metrics of a store since a server began: counts of events, waits for a claim, and bus lag."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace

from holdfast.bus.execution_bus import RESERVED, Channel
from holdfast.engine.engine import Engine
from holdfast.model.retry import MICROSECONDS
from holdfast.store.database import Row, Transaction

# One read takes the waits of so many claims at most, however many there were since the last.
MAX_SAMPLED_CLAIMS = 1_000
# So many messages are counted at most: a group that is further behind has at least that lag.
MAX_COUNTED_MESSAGES = 10_000
WAIT_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


@dataclass(frozen=True, kw_only=True)
class WaitHistogram:
    """How many tasks were claimed within each bound after they were ready, and after the last."""

    counts: tuple[int, ...] = (0,) * (len(WAIT_BOUNDS) + 1)
    seconds: float = 0.0

    def add_waits(self, waited: list[float]) -> WaitHistogram:
        counts = list(self.counts)
        for each in waited:
            counts[bisect_left(WAIT_BOUNDS, each)] += 1
        return WaitHistogram(counts=tuple(counts), seconds=self.seconds + sum(waited))


@dataclass(frozen=True, kw_only=True)
class GroupLag:
    channel: str
    group: str
    messages: int


@dataclass(frozen=True, kw_only=True)
class StoreMetrics:
    """Counts since the meter began, and the present lag of the groups of the bus."""

    events: Counter[str] = field(default_factory=Counter)
    waits: WaitHistogram = WaitHistogram()
    lags: tuple[GroupLag, ...] = ()
    parked: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _CountedEvents:
    """The number of the last event counted, and the newest number at the last read."""

    counted: int
    seen: int


class Meter:
    """Reads the metrics of a store; a read costs only what has happened since the one before."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        newest = int(engine.database.view(_read_newest_numbers)["event"])
        self._counted_events = _CountedEvents(counted=newest, seen=newest)
        self._metrics = StoreMetrics()

    def read(self) -> StoreMetrics:
        with self._lock:
            # Both change together, after a whole read: a read may fail halfway.
            self._counted_events, self._metrics = self._engine.database.view(self._count_new_events)
            return self._metrics

    @property
    def groups(self) -> dict[int, int]:
        """How many groups this process has written, by the bit length of their size."""
        return dict(self._engine.commits.sizes)

    @property
    def operations(self) -> int:
        """How many operations this process has written."""
        return self._engine.commits.written

    def _count_new_events(self, tx: Transaction) -> tuple[_CountedEvents, StoreMetrics]:
        newest = _read_newest_numbers(tx)
        after, seen = self._counted_events.counted, int(newest["event"])
        # The newest events of the last read may have been removed since.
        until = max(after, self._find_settled_number(tx, seen))
        events = tx.read("events_by_type", after=after, until=until)
        waits = tx.read("newest_dispatches", after=after, until=until, count=MAX_SAMPLED_CLAIMS)
        told = replace(
            self._metrics,
            events=self._metrics.events
            + Counter({row["type"]: int(row["events"]) for row in events}),
            waits=self._metrics.waits.add_waits([row["waited"] / MICROSECONDS for row in waits]),
            lags=tuple(_read_lags(tx, newest)),
            parked={row["handler"]: row["messages"] for row in tx.read("parked_by_handler")},
        )
        return _CountedEvents(counted=until, seen=seen), told

    def _find_settled_number(self, tx: Transaction, newest: int) -> int:
        """A number below which no new event can come: open transactions may have taken numbers."""
        (snapshot,) = tx.read("snapshot")
        return self._counted_events.seen if snapshot["oldest"] < snapshot["next"] else newest


def _read_newest_numbers(tx: Transaction) -> Row:
    return tx.read("newest_number")[0]


def _read_lags(tx: Transaction, newest: Row) -> list[GroupLag]:
    return [
        GroupLag(
            channel=row["channel"], group=row["consumers"], messages=_count_lag(tx, row, newest)
        )
        for row in tx.read("places_of_groups")
        if not row["consumers"].startswith(RESERVED)
    ]


def _count_lag(tx: Transaction, group: Row, newest: Row) -> int:
    if group["channel"] == Channel.EVENTS:
        return max(0, int(newest["event"]) - int(group["passed"]))
    asked = {"channel": group["channel"], "passed": group["passed"], "count": MAX_COUNTED_MESSAGES}
    return int(tx.read("some_messages_after", **asked)[0]["messages"])
