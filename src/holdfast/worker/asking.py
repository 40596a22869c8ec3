"""Asks for ready work that this process did not make ready itself: that comes unasked."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future

from holdfast.engine.claims.standing_claims import Taker
from holdfast.errors import ShuttingDown
from holdfast.worker.office import Office

log = logging.getLogger("holdfast.worker")


class Asking:
    """One question at a time, by whatever thread has heard that there may be something.

    `may` tells whether the worker takes anything now, `again` has its own thread ask, and `end`
    hears that nothing will ever be given.
    """

    def __init__(
        self,
        engine: Office,
        *,
        may: Callable[[], bool],
        again: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._may = may
        self._again = again
        self._end = end
        self._lock = engine.threads.lock()
        self._asked: Future[None] | None = None
        self._asked_at = engine.clock.monotonic()
        self.hinted = True

    def ask(self, taker: Taker, *, hinted: bool = False) -> bool:
        """Ask after a hint, or when it was long ago; whether it did."""
        poll, now = self._engine.settings.poll, self._engine.clock.monotonic()
        with self._lock:
            if hinted:
                self.hinted = True
            wanted = self.hinted or now >= self._asked_at + poll
            waits = self._asked is not None and not self._asked.done()
            if waits or not wanted or not self._may():
                return False
            self.hinted, self._asked_at = False, now
            self._asked = asked = self._engine.work.pull.submit(taker)
        asked.add_done_callback(self._hear)
        return True

    def _hear(self, asked: Future[None]) -> None:
        error = asked.exception()
        if isinstance(error, ShuttingDown):
            self._end()
        elif error is not None:
            pause = self._engine.settings.poll
            log.error("could not look for work; trying again in %s s: %s", pause, error)
        elif self.hinted:
            # A hint that came meanwhile is about what this one may have missed.
            self._again()
