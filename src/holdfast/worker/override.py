"""The one place more that a full worker has for what somebody wants to run now."""

from __future__ import annotations

import logging
from collections.abc import Container
from concurrent.futures import Future

from holdfast.errors import HoldfastError
from holdfast.model.task import Assignment
from holdfast.worker.office import Office
from holdfast.worker.options import WorkerOptions

LOOK_EVERY = 0.1

log = logging.getLogger("holdfast.worker")


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
