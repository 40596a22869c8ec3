"""Pulls: requests for work that others made ready, and claims of tasks that are to run now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from concurrent.futures import Future
from functools import partial

from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.errors import HoldfastError, ShuttingDown
from holdfast.model.task import Assignment
from holdfast.worker.pool.worker_attempts import LOOK_EVERY
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.store_port import StorePort

log = logging.getLogger("holdfast.worker")


class Puller:
    """Pulls of one standing claim, one at a time, sent by whichever thread brings a hint.

    Work that this process made ready itself is handed over without a pull. `may_pull` tells whether
    the worker takes tasks now, `pull_again` wakes the worker's own thread, and `on_shutdown` is
    called when the store gives nothing more.
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
        # From before a pull is sent until its reply has come.
        self._pulling = False
        self._pulled_at = store.clock.monotonic()
        self.hinted = True

    def pull(self, standing_claim: StandingClaim, *, hinted: bool = False) -> bool:
        """Send a pull after a hint, or when the last one was long ago; gives whether it did."""
        poll, now = self._store.settings.poll, self._store.clock.monotonic()
        with self._lock:
            if hinted:
                self.hinted = True
            wanted = self.hinted or now >= self._pulled_at + poll
            if self._pulling or not wanted or not self._may_pull():
                return False
            self.hinted, self._pulled_at, self._pulling = False, now, True
        try:
            # Without the lock: this thread may write the pull itself, and so bring a hint.
            reply = self._store.work.pull.submit(standing_claim)
        except BaseException:
            self._pulling = False
            raise
        reply.add_done_callback(self._on_reply)
        return True

    def _on_reply(self, reply: Future[None]) -> None:
        self._pulling = False
        error = reply.exception()
        if isinstance(error, ShuttingDown):
            self._on_shutdown()
        elif error is not None:
            pause = self._store.settings.poll
            log.error("could not look for work; trying again in %s s: %s", pause, error)
        elif self.hinted:
            # A hint that came meanwhile may be about work that this pull has missed.
            self._pull_again()


class RunNowClaims:
    """Claims of tasks that are to run now, by a worker without room: one such task at a time."""

    def __init__(
        self, store: StorePort, options: WorkerOptions, *, equipped: Sequence[str]
    ) -> None:
        self._store = store
        self._equipped = equipped
        self._options = options
        self._sent_at = self._looked_at = store.clock.monotonic()
        self._reply: Future[list[Assignment]] | None = None
        self._claimed: tuple[str, int] | None = None

    def use_options(self, options: WorkerOptions) -> None:
        """Claim from now on under the name that the worker has taken."""
        self._options = options

    def claim_next(self, running: Container[tuple[str, int]]) -> bool:
        """Claim a task that is to run now, unless one runs already; gives whether it did."""
        now = self._store.clock.monotonic()
        if (
            self._reply is not None
            or self._claimed in running
            or now < self._looked_at + LOOK_EVERY
        ):
            return False
        self._looked_at = self._sent_at = now
        options, work = self._options, self._store.work
        found = work.first_to_run_now(
            options.agents, options.offered_tags, bare=False, equipped=self._equipped
        )
        if found is None:
            return False
        self._reply = work.claim_by_id.submit(
            found, options.named, agents=options.agents, tags=options.offered_tags
        )
        return True

    def take_claimed(self) -> list[tuple[Callable[[], list[Assignment]], float]]:
        """Ways to read finished claims, with the time from which the leases count."""
        reply = self._reply
        if reply is None or not reply.done():
            return []
        self._reply = None
        return [(partial(self._read_claimed, reply), self._sent_at)]

    def _read_claimed(self, reply: Future[list[Assignment]]) -> list[Assignment]:
        try:
            given = reply.result()
        except HoldfastError as error:
            log.warning("what is to run now could not be claimed: %s", error)
            return []
        for each in given:
            self._claimed = (each.task_id, each.attempt)
        return given
