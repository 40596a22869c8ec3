"""Asks for ready work that this process did not make ready itself: that comes unasked.

The one place more that a full worker has for what somebody wants to run now.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from concurrent.futures import Future

from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.errors import HoldfastError, ShuttingDown
from holdfast.model.task import Assignment
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.store_port import Office

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

    def ask(self, standing_claim: StandingClaim, *, hinted: bool = False) -> bool:
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
            self._asked = asked = self._engine.work.pull.submit(standing_claim)
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


LOOK_EVERY = 0.1


class Override:
    def __init__(self, engine: Office, options: WorkerOptions, *, bare: bool) -> None:
        self._engine = engine
        self._bare = bare
        self._options = options
        self._asked = self._looked = engine.clock.monotonic()
        self._reply: Future[list[Assignment]] | None = None
        self._key: tuple[str, int] | None = None

    def serve(self, options: WorkerOptions) -> None:
        """Claim from now on under the name that the worker has taken."""
        self._options = options

    def ask(self, running: Container[tuple[str, int]]) -> int:
        """Claim what is to run now, unless its place is taken; how many are on their way."""
        now = self._engine.clock.monotonic()
        if self._reply is not None or self._key in running or now < self._looked + LOOK_EVERY:
            return 0
        self._looked = self._asked = now
        options, work = self._options, self._engine.work
        found = work.first_now(options.agents, options.tags, bare=self._bare)
        if found is None:
            return 0
        self._reply = work.claim_by_id.submit(
            found, options.named, agents=options.agents, tags=options.tags
        )
        return 1

    def take(self) -> list[tuple[list[Assignment], float]]:
        """What came of it, which may be nothing, with the time from which its lease counts."""
        reply = self._reply
        if reply is None or not reply.done():
            return []
        self._reply = None
        try:
            given = reply.result()
        except HoldfastError as error:
            log.warning("what is to run now could not be claimed: %s", error)
            given = []
        for each in given:
            self._key = (each.task_id, each.attempt)
        return [(given, self._asked)]
