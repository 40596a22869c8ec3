"""Presence: the record that a worker lives, and the way it hears that it should go."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import count

from holdfast.errors import HoldfastError
from holdfast.model.moment import count_microseconds
from holdfast.model.worker import LiveWorker, Overrun
from holdfast.store.database import Row
from holdfast.store.deadlocks import refuse_deadlock
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.steps.process_identity import ProcessIdentity
from holdfast.worker.store_port import StorePort

log = logging.getLogger("holdfast.worker")
# A worker that ends waits at most so many seconds for the store to note it.
LEAVE_SECONDS = 1.0


class Presence:
    """Sends a sign of life as often as leases are renewed.

    Between `begin` and `leave` it never waits for the store.
    """

    def __init__(self, store: StorePort, options: WorkerOptions, equipped: Sequence[str]) -> None:
        self._store = store
        self._equipped = equipped
        self._options = options
        self._due = store.clock.monotonic()
        self._reply: Future[Row | None] | None = None
        self._started_at: int | None = None
        self._pausing: str | None = None
        self._overruns: Sequence[Overrun] = ()
        self._warned = False
        self._has_left = False

    def begin(self) -> WorkerOptions:
        """Register the worker before it claims a task; without the store, that is tried later.

        Gives the options of the worker, with the name that it has from now on.
        """
        refuse_deadlock("worker(…)", self._store.file)
        self._due = self._store.clock.monotonic() + self._store.settings.renewal
        given = self._options
        try:
            for name in self._find_free_names():
                self._options = replace(given, name=name)
                if (found := self._send().result()) is not None:
                    self._note_registration(found)
                    break
            if given.name not in {None, self._options.name}:
                self._warn_of_name(given.named)
        except HoldfastError as error:
            self._options = replace(self._options, name=self._options.named)
            self._warn_of_silence(error)
        return self._options

    def _find_free_names(self) -> Iterator[str]:
        """The names of the worker that no live worker has.

        A worker of this machine whose process is gone is forgotten first, which frees its name.
        """
        taken = {each.name for each in self._store.workers.list() if not self._forget_if_gone(each)}
        options = self._options
        yield from (name for name in map(options.number_name, count(1)) if name not in taken)

    def _forget_if_gone(self, worker: LiveWorker) -> bool:
        origin = ProcessIdentity.read(worker.process)
        if origin is None or not origin.is_gone:
            return False
        self._store.workers.forget(worker.name, count_microseconds(worker.started_at))
        return True

    def step(self, pausing: str | None = None, overruns: Sequence[Overrun] = ()) -> str | None:
        """Send a sign of life if one is due, with the reason for claiming nothing, if there is one.

        Gives the order to go, if the answer to an earlier sign of life held one.
        """
        told = self._take_reply()
        if self._has_left:
            return told
        now = self._store.clock.monotonic()
        news = (pausing, overruns) != (self._pausing, self._overruns)
        if self._reply is None and (now >= self._due or news):
            self._due, self._pausing = now + self._store.settings.renewal, pausing
            self._overruns = overruns
            self._reply = self._send()
        return told

    def leave(self) -> None:
        """Have the store forget the worker, and wait a little: the program may end right after."""
        self._has_left = True
        if self._started_at is not None:
            with suppress(HoldfastError, TimeoutError):
                told = self._store.workers.forget.submit(self._options.named, self._started_at)
                told.result(LEAVE_SECONDS)

    def _send(self) -> Future[Row | None]:
        workers, options = self._store.workers, self._options
        if self._started_at is not None:
            return workers.announce.submit(
                options.named, self._started_at, self._pausing, self._overruns
            )
        return workers.register.submit(
            options.named,
            agents=options.agents,
            tags=options.offered_tags,
            equipped=self._equipped,
            concurrency=options.limit,
            process=str(ProcessIdentity.own()),
        )

    def _take_reply(self) -> str | None:
        asked = self._reply
        if asked is None or not asked.done():
            return None
        self._reply = None
        try:
            found = asked.result()
        except HoldfastError as error:
            self._warn_of_silence(error)
            return None
        if self._started_at is None:
            self._note_registration(found)
        elif found is None:
            # The worker was silent for so long that the store forgot it.
            self._started_at, self._due = None, self._store.clock.monotonic()
        else:
            return str(found["told"]) if found["told"] else None
        return None

    def _warn_of_name(self, wanted: str) -> None:
        log.warning(
            "another worker named %s lives, or has died just now: this one is called %s, in the "
            "list of workers too and where one is told to go",
            wanted,
            self._options.named,
        )

    def _warn_of_silence(self, error: HoldfastError) -> None:
        log.warning("%s could not say that it lives: %s", self._options, error)

    def _note_registration(self, found: Row | None) -> None:
        if found is not None:
            self._started_at = int(found["started_at"])
            # A new registration has no reason for claiming nothing yet, and no overruns.
            self._pausing, self._overruns = None, ()
        elif not self._warned:
            self._warned = True
            log.warning(
                "another worker took the name %s while this one was silent: this one works, but is "
                "neither listed nor told to go until that one has gone; start it again",
                self._options.named,
            )
