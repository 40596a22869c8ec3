"""Run outcomes: futures of the ends of runs and tasks, looked for again at each hint of others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from math import inf

from holdfast.errors import HoldfastError, NotFound, ShuttingDown, StoreGone
from holdfast.store.database import Database, Row
from holdfast.store.fork_guard import OwningProcess
from holdfast.threads import PollingLoop, Threads

log = logging.getLogger("holdfast.engine")
# Seconds between two looks, and more for each row: other processes may commit often, and most of
# their commits end nothing that somebody waits for here.
REST, REST_PER_ROW = 0.002, 0.000_02
CLOSED = "closed while waiting for a result"


class Outcomes:
    """Futures of the rows of tasks and runs that have ended, in whatever process they end.

    To stop waiting, cancel the future.
    """

    def __init__(self, database: Database, threads: Threads) -> None:
        self._database = database
        self._lock = threads.lock()
        self._waiting: dict[str, list[Future[Row]]] = {}
        self._owner = OwningProcess()
        self._failed_with: HoldfastError | None = None
        self._looks = 0
        # Called with what somebody begins to wait for: a test does the work then, and gives the
        # error for what does not end.
        self.on_wait: Callable[[str], HoldfastError | None] | None = None
        self._loop = PollingLoop(threads, "holdfast-outcomes", self._on_hint, rest=self._rest)
        self.start = self._loop.start
        # To be called when another process has committed.
        self.kick = self._loop.kick

    @property
    def looks(self) -> int:
        """The number of looks for ends; as long as it does not change, no end was seen."""
        return self._looks

    def wait(self, identifier: str, since: int | None = None) -> Future[Row]:
        """A future of the row of a task or run, settled when it ends, or at once if it has ended.

        `since` is the number of `looks` before a new task or run was made: if it is unchanged, the
        task or run cannot have ended, and no look is needed.
        """
        # In a forked child no thread would ever settle the future.
        self._owner.check()
        future: Future[Row] = Future()
        with self._lock:
            if self._failed_with is not None:
                raise self._failed_with
            self._waiting.setdefault(identifier, []).append(future)
            is_new = since == self._looks
        future.add_done_callback(partial(self._forget_cancelled, identifier))
        if not is_new:
            self.look_for_ends([identifier])
        if self.on_wait is not None and not future.done():
            self._end_wait(identifier, self.on_wait(identifier))
        return future

    def _end_wait(self, identifier: str, error: HoldfastError | None) -> None:
        """Settle what has ended meanwhile, or fail who waits where nothing else ends the wait."""
        self.look_for_ends([identifier])
        if error is not None:
            for future in self._take_waiting(identifier, self._waiting.get(identifier, [])):
                future.set_exception(error)

    def close(self) -> None:
        """Stop the loop, and fail the futures that are left."""
        self._loop.close()
        self.fail_all(ShuttingDown(CLOSED))

    def fail_all(self, error: HoldfastError) -> None:
        """Fail the waiting futures and all later calls of `wait` with an error."""
        with self._lock:
            self._failed_with = self._failed_with or error
            left = [future for futures in self._waiting.values() for future in futures]
            self._waiting.clear()
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def look_for_ends(self, identifiers: Iterable[str] | None = None) -> None:
        """Read the rows that somebody waits for, and settle the futures of those that have ended.

        Only futures from before the read: a later one may wait for the next end of a reopened task.
        """
        with self._lock:
            self._looks += 1
            chosen = self._waiting.keys() if identifiers is None else identifiers
            watched = {each: self._waiting[each][:] for each in chosen if each in self._waiting}
        if not watched:
            return
        ids = sorted(watched)
        there = self._database.view(lambda tx: tx.read("awaited_rows", ids=ids))
        for row in there:
            if row["ended"]:
                for future in self._take_waiting(row["id"], watched[row["id"]]):
                    future.set_result(row)
        for identifier in watched.keys() - {row["id"] for row in there}:
            for future in self._take_waiting(identifier, watched[identifier]):
                future.set_exception(NotFound(identifier))

    def _on_hint(self) -> float | None:
        try:
            self.look_for_ends()
        except (ShuttingDown, StoreGone):
            return None
        except Exception:
            log.exception("cannot look for what has ended; recovery will")
        return inf

    def _rest(self) -> float:
        return REST + REST_PER_ROW * len(self._waiting)

    def _take_waiting(self, identifier: str, asked: list[Future[Row]]) -> list[Future[Row]]:
        """Remove those of some futures that still wait, so that the caller can settle them."""
        with self._lock:
            waiting = self._waiting.get(identifier, [])
            answered = [future for future in waiting if future in asked]
            self._set_waiting(identifier, [future for future in waiting if future not in asked])
        return [future for future in answered if future.set_running_or_notify_cancel()]

    def _set_waiting(self, identifier: str, futures: list[Future[Row]]) -> None:
        if futures:
            self._waiting[identifier] = futures
        else:
            self._waiting.pop(identifier, None)

    def _forget_cancelled(self, identifier: str, future: Future[Row]) -> None:
        if not future.cancelled():
            return
        with self._lock:
            waiting = self._waiting.get(identifier, [])
            self._set_waiting(identifier, [each for each in waiting if each is not future])
