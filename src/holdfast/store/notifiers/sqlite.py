"""Hints across the processes that share a SQLite file, by a watch on its log and by looks at it."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.settings import Settings
from holdfast.store.fork_guard import OwningProcess
from holdfast.store.notifiers.file_watch import FileWatch, open_watch
from holdfast.store.notifiers.memory import MemoryNotifier
from holdfast.store.notifiers.poll_pace import LONGEST_REST, PollPace
from holdfast.store.sqlite.database import SqliteDatabase
from holdfast.threads import RunningThread, Threads


class SqliteNotifier:
    name = ""

    def __init__(
        self,
        database: SqliteDatabase,
        threads: Threads,
        settings: Settings,
        open_watch: Callable[[str, Threads], FileWatch] = open_watch,
    ) -> None:
        self._database = database
        self._threads = threads
        self._interval = settings.watch
        self._open_watch = open_watch
        self._memory = MemoryNotifier(threads)
        self._stop = threads.event()
        self._owner = OwningProcess()
        self._watch: FileWatch | None = None
        self._watcher: RunningThread | None = None

    def notify(self, *, served: bool = False) -> None:
        self._memory.notify(served=served)

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        return self._memory.subscribe(callback, served=served, own=own)

    def start(self) -> None:
        # The first look is not reported: only commits after start() are.
        self._watch = watch = self._open_watch(self._database.log_path(), self._threads)
        self._database.foreign_commits.look()
        self._watcher = self._threads.start("holdfast-watch", lambda: self._run(watch))

    def close(self) -> None:
        # A forked child would wake its parent's thread, and wait for a thread that it lacks.
        if self._watcher is not None and self._watch is not None and self._owner.is_current():
            self._stop.set()
            self._watch.wake()
            self._watcher.join()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _run(self, watch: FileWatch) -> None:
        commits = self._database.foreign_commits
        pace = PollPace(self._interval, trusted=watch.reports_writes)
        written = False
        while not self._stop.is_set():
            # The look comes after the wait: a write from now on ends the next wait.
            seen = commits.look()
            if seen.others:
                self._memory.notify(own=False)
            pause = pace.pause_after(seen, written=written)
            # In a crowd there is always a commit to be seen, and each look delays the writer.
            rest = max(pause.rest, LONGEST_REST if self._database.lock_waits.crowded else 0.0)
            if rest:
                self._stop.wait(rest)
            written = watch.wait(pause.wait)
