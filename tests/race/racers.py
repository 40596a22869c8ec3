"""Writers that race: each on its own connection and thread, stopped where a test wants it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from holdfast.clock import ManualClock
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim, StandingClaims
from holdfast.engine.core.effect_limits import Bounds
from holdfast.engine.core.operation import Operation
from holdfast.engine.writer.writer import Writer
from holdfast.errors import StoreBusy
from holdfast.ids import Ids
from holdfast.randomness import SeededRandomness, SystemRandomness
from holdfast.settings import Settings
from holdfast.store.database import (
    Row,
    SqlDirectories,
    Transaction,
    is_postgresql,
    read_replies,
)
from holdfast.store.drivers import open_database
from holdfast.store.sql_text.queries import Rows
from holdfast.threads import SystemThreads
from tests.race.worlds import LEASE

PATIENCE = 20.0
GLANCE = 0.002
COMMIT = "COMMIT"

_BLOCKED = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND application_name = %s
  AND cardinality(pg_blocking_pids(pid)) > 0
"""


class RaceClock(ManualClock):
    """The time of day moves by hand and is shared; waiting for others is real, and is seen."""

    def __init__(self, day: ManualClock) -> None:
        super().__init__()
        self._day = day
        self.waits = 0

    def now(self) -> int:
        return self._day.now()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        self.waits += 1
        time.sleep(seconds)


class Gate:
    """Stops one transaction before a statement, given by its number or by its name.

    Just before COMMIT is the place behind the last statement.
    """

    def __init__(self, place: int | str) -> None:
        self._place = place
        self._passed = 0
        self._used = False
        self.reached = threading.Event()
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    def pass_by(self, query: str, transaction: Transaction) -> None:
        here, self._passed = self._passed, self._passed + 1
        if self._place not in {here, query} or self._used:
            return
        self._used = True
        # What was given to a pipeline without asking for its answer has to be under way by now.
        transaction.read("now")
        self.reached.set()
        if not self._opened.wait(PATIENCE):
            raise TimeoutError(f"nobody opened the gate at {query}")

    def restart(self) -> None:
        """The transaction begins again, after a rollback."""
        self._passed = 0


class GatedTransaction:
    def __init__(self, inner: Transaction, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        self._gate.pass_by(query, self._inner)
        return self._inner.read(query, rows=rows, **parameters)

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        self._gate.pass_by(query, self._inner)
        return self._inner.change(query, rows=rows, **parameters)

    def read_late(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> Callable[[], list[Row]]:
        self._gate.pass_by(query, self._inner)
        return self._inner.read_late(query, rows=rows, **parameters)

    def send_ahead(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._gate.pass_by(query, self._inner)
        self._inner.send_ahead(query, rows=rows, **parameters)

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        self._gate.pass_by(query, self._inner)
        self._inner.insert(query, rows=rows, some=some)

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        self._gate.pass_by(query, self._inner)
        return self._inner.write(query, rows=rows, **parameters)

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._gate.pass_by(query, self._inner)
        self._inner.run(query, rows=rows, **parameters)


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """A transaction that stands at its gate, or has passed it by and ended."""

    future: Future[list[object]]
    gate: Gate

    def finish(self) -> list[object]:
        self.gate.open()
        return self.future.result(PATIENCE)


class Racer:
    """One process's writer, as far as the database can tell."""

    def __init__(
        self,
        url: str,
        name: str,
        day: ManualClock,
        files: SqlDirectories | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.name = name
        self.clock = RaceClock(day)
        self._postgresql = is_postgresql(url)
        if self._postgresql:
            url += f"{'&' if '?' in url else '?'}application_name={name}"
        self.database = open_database(
            url,
            clock=self.clock,
            randomness=SeededRandomness(len(name)),
            threads=SystemThreads(),
            settings=Settings(url=url, patience=PATIENCE),
            sql_directories=files,
        )
        secret = self.database.view(lambda tx: tx.read("store_secret"))[0]["value"]
        self._new_writer = partial(
            Writer,
            secret=secret.encode(),
            dialect=self.database.dialect,
            ids=Ids(self.clock, SystemRandomness()),
            bounds=bounds or Bounds.of(Settings(url=url)),
        )
        self._writer = self._new_writer()
        # Whose work somebody in its process stands ready for.
        self.serves: str | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._watch = psycopg.connect(url, autocommit=True) if self._postgresql else None
        if self._watch is not None:
            self._watch.execute("SELECT set_config('application_name', 'watch', false)")

    def start(
        self, operations: Sequence[Operation], gate: Gate | None = None
    ) -> Future[list[object]]:
        """Write a group in a transaction of its own, on this racer's thread."""

        def work(transaction: Transaction) -> list[object]:
            writer = self._writer if self.serves is None else self._serving(self.serves)
            if gate is None:
                return writer.apply(transaction, operations)
            gate.restart()
            replies = writer.apply(GatedTransaction(transaction, gate), operations)
            gate.pass_by(COMMIT, transaction)
            return replies

        def perform() -> list[object]:
            replies = read_replies(self._written(work))
            return [each.read() if isinstance(each, Claimed) else each for each in replies]

        return self._thread.submit(perform)

    def _serving(self, agent: str) -> Writer:
        """One whose worker has room; made anew, as what is written again is handed to nobody."""
        takers = StandingClaims()
        takers.add(
            StandingClaim(
                worker="anna",
                agents=(agent,),
                tags="[]",
                lease=LEASE,
                room=lambda: 1,
                passed=tuple,
                deliver=lambda _: None,
                bare=False,
                may_have_more=False,
                free=1,
            )
        )
        return self._new_writer(standing_claims=takers)

    def _written(self, work: Callable[[Transaction], list[object]]) -> list[object]:
        """Try again what finds a row locked for long, as the group commit does."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.database.transact(work)
            except StoreBusy:
                self.clock.waits += 1
                if time.monotonic() > end:
                    raise

    def perform(self, operations: Sequence[Operation]) -> list[object]:
        return self.start(operations).result(PATIENCE)

    def start_up_to(self, place: int | str, operations: Sequence[Operation]) -> Stopped:
        """Write a group, but stop at a place, if it comes there."""
        gate = Gate(place)
        future = self.start(operations, gate)
        if not eventually(lambda: gate.reached.is_set() or future.done(), future):
            raise TimeoutError(f"{self.name} came neither to {place} nor to its end")
        return Stopped(future=future, gate=gate)

    def go_as_far_as_possible(self, future: Future[list[object]]) -> bool:
        """Wait until a transaction has ended or waits for another; True when it waits."""
        waits = self.clock.waits
        if not eventually(lambda: future.done() or self._waits(waits), future):
            raise TimeoutError(f"{self.name} neither ended nor waits for anyone")
        return not future.done()

    def close(self) -> None:
        self._thread.shutdown()
        self.database.close()
        if self._watch is not None:
            self._watch.close()

    def _waits(self, before: int) -> bool:
        # Once may be chance: who tries in vain again and again waits for someone.
        if self.clock.waits > before + 2:
            return True
        if self._watch is None:
            return False
        return self._watch.execute(_BLOCKED, (self.name,)).fetchone() is not None


def eventually(condition: Callable[[], bool], future: Future[Any] | None = None) -> bool:
    """Look again and again until something is so; sooner when the future is done."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            return False
        wait([future or Future()], timeout=GLANCE)
    return True
