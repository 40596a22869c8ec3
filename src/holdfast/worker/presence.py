"""Says that a worker lives, and hears when somebody wants it to go."""

from __future__ import annotations

import logging
from concurrent.futures import Future, wait
from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.store.database import Row
from holdfast.worker.office import Office
from holdfast.worker.options import WorkerOptions

log = logging.getLogger("holdfast.worker")


class Presence:
    """Speaks up as often as leases are renewed; it never waits for the store."""

    def __init__(self, engine: Office, options: WorkerOptions) -> None:
        self._engine = engine
        self._options = options
        self._due = engine.clock.monotonic()
        self._asked: Future[Row | None] | None = None
        self._started_at: int | None = None
        self._warned = False

    def begin(self) -> None:
        """Be known before the first task is claimed; a store that cannot hear it now may later."""
        self._due = self._engine.clock.monotonic() + self._engine.settings.renewal
        self._asked = self._say()
        wait([self._asked])
        self._hear()

    def step(self) -> str | None:
        """Say it where it is due; the answer is what the worker is told, once."""
        told = self._hear()
        now = self._engine.clock.monotonic()
        if self._asked is None and now >= self._due:
            self._due = now + self._engine.settings.renewal
            self._asked = self._say()
        return told

    def leave(self) -> None:
        """Say that it is gone; nobody waits for that."""
        if self._started_at is not None:
            with suppress(HoldfastError):
                self._engine.workers.forget.submit(self._options.name, self._started_at)

    def _say(self) -> Future[Row | None]:
        workers, options = self._engine.workers, self._options
        if self._started_at is not None:
            return workers.announce.submit(options.name, self._started_at)
        return workers.register.submit(
            options.name,
            agents=options.agents,
            tags=options.tags,
            concurrency=options.concurrency,
        )

    def _hear(self) -> str | None:
        asked = self._asked
        if asked is None or not asked.done():
            return None
        self._asked = None
        try:
            found = asked.result()
        except HoldfastError as error:
            log.warning("%s could not say that it lives: %s", self._options, error)
            return None
        if self._started_at is None:
            self._registered(found)
        elif found is None:
            # It was silent for so long that it was forgotten.
            self._started_at, self._due = None, self._engine.clock.monotonic()
        else:
            return str(found["told"]) if found["told"] else None
        return None

    def _registered(self, found: Row | None) -> None:
        if found is not None:
            self._started_at = int(found["started_at"])
        elif not self._warned:
            self._warned = True
            log.warning(
                "another worker named %s lives, or has died just now: give each a name of its own",
                self._options.name,
            )
