"""Says that a worker lives, and hears when somebody wants it to go."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import count

from holdfast.errors import HoldfastError
from holdfast.model.worker import LiveWorker
from holdfast.store.database import Row
from holdfast.store.deadlocks import refuse_deadlock
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.steps.process_identity import Origin
from holdfast.worker.store_port import Office

log = logging.getLogger("holdfast.worker")
# For how many seconds a worker that goes waits until that is known.
LEAVING = 1.0


class Presence:
    """Speaks up as often as leases are renewed; until it leaves, it never waits for the store."""

    def __init__(self, engine: Office, options: WorkerOptions) -> None:
        self._engine = engine
        self._options = options
        self._due = engine.clock.monotonic()
        self._asked: Future[Row | None] | None = None
        self._started_at: int | None = None
        self._pausing: str | None = None
        self._warned = False

    def begin(self) -> WorkerOptions:
        """Be known before the first task is claimed; a store that cannot hear it now may later.

        The answer are its options, with the name that it has from now on.
        """
        refuse_deadlock("worker(…)", self._engine.file)
        self._due = self._engine.clock.monotonic() + self._engine.settings.renewal
        given = self._options
        try:
            for name in self._free_names():
                self._options = replace(given, name=name)
                if (found := self._say().result()) is not None:
                    self._registered(found)
                    break
            if given.name not in {None, self._options.name}:
                self._say_called(given.named)
        except HoldfastError as error:
            self._options = replace(self._options, name=self._options.named)
            self._say_silent(error)
        return self._options

    def _free_names(self) -> Iterator[str]:
        """Each of its names under which nobody lives.

        A worker of this machine whose process is gone is forgotten first: its name may be the one.
        """
        taken = {each.name for each in self._engine.workers.list() if not self._buried(each)}
        options = self._options
        yield from (name for name in map(options.slot, count(1)) if name not in taken)

    def _buried(self, worker: LiveWorker) -> bool:
        origin = Origin.read(worker.process)
        if origin is None or not origin.is_gone:
            return False
        self._engine.workers.forget(worker.name, worker.started_at)
        return True

    def step(self, pausing: str | None = None) -> str | None:
        """Say it where it is due, and why nothing is claimed; the answer is what it is told."""
        told = self._hear()
        now = self._engine.clock.monotonic()
        if self._asked is None and (now >= self._due or pausing != self._pausing):
            self._due, self._pausing = now + self._engine.settings.renewal, pausing
            self._asked = self._say()
        return told

    def leave(self) -> None:
        """Say that it is gone, and wait a little: a program may end with its worker."""
        if self._started_at is not None:
            with suppress(HoldfastError, TimeoutError):
                told = self._engine.workers.forget.submit(self._options.named, self._started_at)
                told.result(LEAVING)

    def _say(self) -> Future[Row | None]:
        workers, options = self._engine.workers, self._options
        if self._started_at is not None:
            return workers.announce.submit(options.named, self._started_at, self._pausing)
        return workers.register.submit(
            options.named,
            agents=options.agents,
            tags=options.tags,
            concurrency=options.concurrency,
            process=str(Origin.own()),
        )

    def _hear(self) -> str | None:
        asked = self._asked
        if asked is None or not asked.done():
            return None
        self._asked = None
        try:
            found = asked.result()
        except HoldfastError as error:
            self._say_silent(error)
            return None
        if self._started_at is None:
            self._registered(found)
        elif found is None:
            # It was silent for so long that it was forgotten.
            self._started_at, self._due = None, self._engine.clock.monotonic()
        else:
            return str(found["told"]) if found["told"] else None
        return None

    def _say_called(self, wanted: str) -> None:
        log.warning(
            "another worker named %s lives, or has died just now: this one is called %s, in the "
            "list of workers too and where one is told to go",
            wanted,
            self._options.named,
        )

    def _say_silent(self, error: HoldfastError) -> None:
        log.warning("%s could not say that it lives: %s", self._options, error)

    def _registered(self, found: Row | None) -> None:
        if found is not None:
            self._started_at = int(found["started_at"])
            # What was said of that before is not known of it any more.
            self._pausing = None
        elif not self._warned:
            self._warned = True
            log.warning(
                "another worker took the name %s while this one was silent: this one works, but is "
                "neither listed nor told to go until that one has gone; start it again",
                self._options.named,
            )
