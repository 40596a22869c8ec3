"""Waiting for runs and tasks to end: one registry, asked again on every hint."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.errors import ShuttingDown
from holdfast.store.database import Database, Row
from holdfast.threads import Threads


@dataclass(frozen=True, kw_only=True)
class _Waiter:
    future: Future[Row]
    until: float | None


class Outcomes:
    """Futures of the ended rows of tasks and runs, whoever ends them."""

    def __init__(self, database: Database, threads: Threads, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threads.lock()
        self._waiting: dict[str, list[_Waiter]] = {}

    def wait(self, identifier: str, timeout: float | None = None) -> Future[Row]:
        """The row of a task or run once it has ended; at once when it already has."""
        future: Future[Row] = Future()
        until = None if timeout is None else self._clock.monotonic() + timeout
        with self._lock:
            self._waiting.setdefault(identifier, []).append(_Waiter(future=future, until=until))
        self.look([identifier])
        return future

    def expire(self) -> float | None:
        """Give up on those who waited long enough; how long the next one still waits."""
        now = self._clock.monotonic()
        overdue: list[tuple[str, _Waiter]] = []
        left: list[float] = []
        with self._lock:
            for identifier, waiters in list(self._waiting.items()):
                late = [each for each in waiters if each.until is not None and each.until <= now]
                overdue += [(identifier, each) for each in late]
                kept = [each for each in waiters if each not in late]
                left += [each.until - now for each in kept if each.until is not None]
                if kept:
                    self._waiting[identifier] = kept
                else:
                    del self._waiting[identifier]
        for identifier, waiter in overdue:
            if waiter.future.set_running_or_notify_cancel():
                waiter.future.set_exception(TimeoutError(f"{identifier} has not ended yet"))
        return min(left, default=None)

    def close(self) -> None:
        """Tell everyone who still waits that no answer will come from here."""
        with self._lock:
            left = [waiter for waiters in self._waiting.values() for waiter in waiters]
            self._waiting.clear()
        for waiter in left:
            if waiter.future.set_running_or_notify_cancel():
                waiter.future.set_exception(ShuttingDown("closed while waiting for a result"))

    def look(self, identifiers: Iterable[str] | None = None) -> None:
        """Read the rows that somebody waits for, and answer those that have ended."""
        with self._lock:
            chosen = self._waiting.keys() if identifiers is None else identifiers
            watched = sorted(each for each in chosen if each in self._waiting)
        if not watched:
            return
        rows = self._database.view(lambda tx: tx.read("ended_rows", ids=watched))
        for row in rows:
            with self._lock:
                waiters = self._waiting.pop(row["id"], [])
            for waiter in waiters:
                if waiter.future.set_running_or_notify_cancel():
                    waiter.future.set_result(row)
