"""The loop that time drives: expired leases, scheduled tasks, limits, keys with room."""

from __future__ import annotations

import logging

from holdfast.clock import MICROSECONDS
from holdfast.engine.desk import Desk
from holdfast.engine.operations import Sweep
from holdfast.engine.outcomes import Outcomes
from holdfast.engine.work import Work
from holdfast.errors import ShuttingDown
from holdfast.threads import Running, Threads

log = logging.getLogger("holdfast.recovery")


class Recovery:
    """Looks at least once an interval, and sooner when something is due sooner."""

    def __init__(self, desk: Desk, work: Work, threads: Threads, *, outcomes: Outcomes) -> None:
        self._desk = desk
        self._work = work
        self._threads = threads
        self._outcomes = outcomes
        self._kick = threads.event()
        self._stop = threads.event()
        self._thread: Running | None = None

    def start(self) -> None:
        self._thread = self._threads.start("holdfast-recovery", self._loop)

    def close(self) -> None:
        self._stop.set()
        self._kick.set()
        if self._thread is not None:
            self._thread.join()

    def kick(self) -> None:
        """Something was scheduled: look again when it may be due."""
        self._kick.set()

    def step(self) -> float:
        """Do what is due now; the answer is how many seconds nothing will be."""
        self._work.recover()
        if self._due() <= 0:
            self._desk.submit(Sweep()).result()
        self._outcomes.look()
        return max(0.001, min(self._desk.settings.recovery, self._due()))

    def _due(self) -> float:
        row = self._desk.view(lambda tx: tx.read("next_wake"))[0]
        if row["waiting"]:
            return 0.0
        if row["at"] is None:
            return self._desk.settings.recovery
        return float((row["at"] - row["now"]) / MICROSECONDS)

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._kick.clear()
            pause = self._desk.settings.recovery
            try:
                pause = self.step()
            except ShuttingDown:
                return
            except Exception:
                log.exception("recovery could not look; it looks again in %s s", pause)
            self._kick.wait(pause)
