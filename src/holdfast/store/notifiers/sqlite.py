"""Hints across the processes that share one SQLite file: a look at its data version."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import apsw

from holdfast.clock import Clock
from holdfast.settings import Settings
from holdfast.store.notifiers.memory import MemoryNotifier
from holdfast.store.sqlite.connection import connect
from holdfast.threads import Running, Threads

logger = logging.getLogger(__name__)
# After so many looks in vain the next ones are so much rarer.
LOOKS, SELDOM = 50, 2.5


class SqliteNotifier:
    name = ""

    def __init__(self, path: Path, clock: Clock, threads: Threads, settings: Settings) -> None:
        self._path = path.absolute()
        self._clock = clock
        self._threads = threads
        self._interval = settings.watch
        self._memory = MemoryNotifier(threads)
        self._stop = threads.event()
        self._watcher: Running | None = None

    def notify(self, *, served: bool = False) -> None:
        self._memory.notify(served=served)

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        return self._memory.subscribe(callback, served=served, own=own)

    def start(self) -> None:
        # Opened here, so that no commit after start() goes unseen.
        connection = connect(self._path, self._clock, read_only=True)
        seen = _data_version(connection)
        self._watcher = self._threads.start("holdfast-watch", lambda: self._watch(connection, seen))

    def close(self) -> None:
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self, connection: apsw.Connection, seen: int | None) -> None:
        quiet = 0
        try:
            # Where nothing has happened for long, somebody types the next thing: no hurry.
            while not self._stop.wait(self._interval * (1 if quiet < LOOKS else SELDOM)):
                quiet += 1
                version = _data_version(connection)
                if version is not None and version != seen:
                    seen, quiet = version, 0
                    self._memory.notify(own=False)
        finally:
            connection.close()


def _data_version(connection: apsw.Connection) -> int | None:
    try:
        return int(connection.execute("PRAGMA data_version").get)
    except apsw.Error:
        # Busy while the file is recovered or checkpointed away; the next look will tell.
        logger.debug("cannot look at the data version", exc_info=True)
        return None
