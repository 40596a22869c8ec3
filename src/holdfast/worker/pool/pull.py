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
from holdfast.worker.store_port import StorePort

log = logging.getLogger("holdfast.worker")


class Puller:
    """One question at a time, by whatever thread has heard that there may be something.

    `may` tells whether the worker takes anything now, `again` has its own thread ask, and `end`
    hears that nothing will ever be given.
    """

    def __init__(
        self,
        store: StorePort,
        *,
        may_pull: Callable[[], bool],
        pull_again: Callable[[], None],
        on_shutdown: Callable[[], None],
    ) -> None:
        self._store = store
        self._may_pull = may_pull
        self._pull_again = pull_again
        self._on_shutdown = on_shutdown
        self._lock = store.threads.lock()
        self._asked: Future[None] | None = None
        self._pulled_at = store.clock.monotonic()
        self.hinted = True

    def ask(self, standing_claim: StandingClaim, *, hinted: bool = False) -> bool:
        """Ask after a hint, or when it was long ago; whether it did."""
        poll, now = self._store.settings.poll, self._store.clock.monotonic()
        with self._lock:
            if hinted:
                self.hinted = True
            wanted = self.hinted or now >= self._pulled_at + poll
            waits = self._asked is not None and not self._asked.done()
            if waits or not wanted or not self._may_pull():
                return False
            self.hinted, self._pulled_at = False, now
            self._asked = asked = self._store.work.pull.submit(standing_claim)
        asked.add_done_callback(self._on_reply)
        return True

    def _on_reply(self, asked: Future[None]) -> None:
        error = asked.exception()
        if isinstance(error, ShuttingDown):
            self._on_shutdown()
        elif error is not None:
            pause = self._store.settings.poll
            log.error("could not look for work; trying again in %s s: %s", pause, error)
        elif self.hinted:
            # A hint that came meanwhile is about what this one may have missed.
            self._pull_again()


LOOK_EVERY = 0.1


class RunNowClaims:
    def __init__(self, store: StorePort, options: WorkerOptions, *, bare: bool) -> None:
        self._store = store
        self._bare = bare
        self._options = options
        self._asked = self._looked_at = store.clock.monotonic()
        self._reply: Future[list[Assignment]] | None = None
        self._claimed: tuple[str, int] | None = None

    def use_options(self, options: WorkerOptions) -> None:
        """Claim from now on under the name that the worker has taken."""
        self._options = options

    def ask(self, running: Container[tuple[str, int]]) -> int:
        """Claim what is to run now, unless its place is taken; how many are on their way."""
        now = self._store.clock.monotonic()
        if (
            self._reply is not None
            or self._claimed in running
            or now < self._looked_at + LOOK_EVERY
        ):
            return 0
        self._looked_at = self._asked = now
        options, work = self._options, self._store.work
        found = work.first_to_run_now(options.agents, options.tags, bare=self._bare)
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
            self._claimed = (each.task_id, each.attempt)
        return [(given, self._asked)]
