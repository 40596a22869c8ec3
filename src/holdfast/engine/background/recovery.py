"""Recovery: the loop for expired leases, scheduled runs, deadlines, schedules, limits, keys."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from math import inf

from holdfast.clock import MICROSECONDS, Clock
from holdfast.engine.background.run_outcomes import Outcomes
from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Sweep
from holdfast.engine.runs import Runs
from holdfast.engine.surroundings.schedules import Schedules
from holdfast.engine.work import ExpiredAttempt, Work, recover_expired_attempts
from holdfast.errors import ShuttingDown, StoreGone
from holdfast.model.result import TransitionResult
from holdfast.threads import PollingLoop, Threads

log = logging.getLogger("holdfast.recovery")
# Seconds between two rounds: under load each commit brings a hint, and rarely an earlier due time.
REST = 0.02


class Recovery:
    """A loop that runs at least once in each recovery interval, and earlier if something is due."""

    def __init__(  # noqa: PLR0913 - all that time brings
        self,
        context: EngineContext,
        work: Work,
        threads: Threads,
        *,
        clock: Clock,
        runs: Runs,
        schedules: Schedules,
        outcomes: Outcomes,
        seconds_to_owed_hint: Callable[[], float],
    ) -> None:
        self._context = context
        self._clock = clock
        self._recovered_at = -inf
        self._under_way: dict[ExpiredAttempt, Future[TransitionResult]] = {}
        self._work = work
        self._runs = runs
        self._schedules = schedules
        self._outcomes = outcomes
        self._seconds_to_owed_hint = seconds_to_owed_hint
        loop = PollingLoop(threads, "holdfast-recovery", self._run_once, rest=lambda: REST)
        self.start, self.close = loop.start, loop.close
        # To be called when something was scheduled, which may be due earlier.
        self.kick = loop.kick

    def step(self) -> float:
        """Do what is due now; returns the seconds until the next thing is due."""
        self._work.recover()
        self._outcomes.look_for_ends()
        return self._do_what_is_due()

    def _do_what_is_due(self) -> float:
        due = self._due()
        if due <= 0:
            self._context.submit(Sweep()).result()
            self._runs.begin_due()
            self._runs.expire()
            # Last, so that a schedule that cannot be moved on delays nothing else.
            self._schedules.fire()
            due = self._due()
        return max(0.001, min(self._context.settings.recovery, due))

    def find_next_due(self) -> int | None:
        """The time in microseconds at which something is due next, expired leases left aside."""
        row = self._context.view(lambda tx: tx.read("next_wake"))[0]
        return None if row["at"] is None else int(row["at"])

    def _due(self) -> float:
        row = self._context.view(lambda tx: tx.read("next_wake"))[0]
        if row["waiting"]:
            return 0.0
        due = self._context.settings.recovery
        if row["at"] is not None:
            due = float((row["at"] - row["now"]) / MICROSECONDS)
        return min(due, self._seconds_to_owed_hint())

    def _run_once(self) -> float | None:
        pause, now = self._context.settings.recovery, self._clock.monotonic()
        try:
            # A hint says that there is new work; it makes no lease end earlier.
            if now >= self._recovered_at + pause / 2:
                self._recovered_at = now
                self._recover_expired_attempts()
                # Ends in other processes come with hints, of which one may be lost.
                self._outcomes.look_for_ends()
            return self._do_what_is_due()
        except ShuttingDown:
            return None
        except StoreGone as gone:
            # The next round tries again to save what the store held.
            return pause if gone.saved is None else None
        except Exception:
            log.exception("recovery could not look; it looks again in %s s", pause)
            return pause

    def _recover_expired_attempts(self) -> None:
        """Submit the expired attempts without waiting for them, because a row may be locked."""
        heard = [
            self._under_way.pop(each)
            for each in list(self._under_way)
            if self._under_way[each].done()
        ]
        errors = [each.exception() for each in heard if each.exception() is not None]
        if errors:
            log.error("not all that was lost could be taken back; it is tried again: %s", errors[0])
        self._under_way |= recover_expired_attempts(self._context, self._under_way)
