"""Keeps the leases of running attempts, and ends those it can no longer vouch for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.errors import HoldfastError, StoreBusy
from holdfast.model.result import TransitionResult
from holdfast.model.task import Renewal
from holdfast.threads import Loop
from holdfast.worker.execution import Execution
from holdfast.worker.office import Office

# What waits does so on a clock that stands still during suspend: it has to look at the other.
LOOK_EVERY = 1.0

log = logging.getLogger("holdfast.heartbeat")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A renewal under way; leases count from before it was sent."""

    at: float
    executions: Sequence[Execution]
    reply: Future[list[TransitionResult]]


class Heartbeat:
    """Its own thread, so that a busy step cannot starve it; it never waits for the store."""

    def __init__(self, engine: Office, executions: Callable[[], Sequence[Execution]]) -> None:
        self._engine = engine
        self._executions = executions
        self._due = engine.clock.monotonic() + engine.settings.renewal
        self._asked: list[Asked] = []
        # Somebody has locked the row of one of them: each is renewed by itself.
        self._apart: set[Execution] = set()
        self._resting = False
        loop = Loop(engine.threads, "holdfast-heartbeat", self._look)
        self.start, self.close = loop.start, loop.close
        # Something may have to end sooner than the next renewal.
        self.kick = loop.kick

    def attend(self) -> None:
        """Look after what has just begun; one that has something to look after does that anyway."""
        if self._resting:
            self.kick()

    def step(self) -> float:
        """Do what is due now; the answer is how many seconds nothing will be."""
        self._hear()
        now = self._engine.clock.monotonic()
        for execution in self._live():
            self._end_if_over(execution, now)
        live = self._live()
        free = self._free(live)
        if now >= self._due and (free or not self._asked):
            self._due = now + self._engine.settings.renewal
            self._ask_all(now, free)
            free = []
        moments = [self._due] if free or not self._asked else []
        for each in live:
            timeout = None if each.reported else each.timeout_at
            moments.append(each.deadline if timeout is None else min(each.deadline, timeout))
        return max(0.0, min(moments, default=self._due) - now)

    def _live(self) -> list[Execution]:
        return [each for each in self._executions() if not each.ended.is_set()]

    def _end_if_over(self, execution: Execution, now: float) -> None:
        late = execution.timeout_at is not None and now >= execution.timeout_at
        # The lease first: who slept through it has lost the attempt, and not run too long.
        if now >= execution.deadline:
            log.warning("%s could not be renewed before its lease ran out", execution)
            execution.end()
        elif late and not execution.reported:
            seconds = execution.assignment.timeout
            execution.fail(TimeoutError(f"ran longer than {seconds:g} s"))
            execution.end()

    def _free(self, live: Sequence[Execution]) -> list[Execution]:
        """Those of whose renewal nothing is to come."""
        under_way = {each for asked in self._asked for each in asked.executions}
        return [each for each in live if each not in under_way]

    def _ask_all(self, now: float, live: Sequence[Execution]) -> None:
        self._apart &= set(self._live())
        together = [each for each in live if each not in self._apart]
        if together:
            self._ask(now, together)
        for each in self._apart.intersection(live):
            self._ask(now, [each])

    def _ask(self, now: float, live: Sequence[Execution]) -> None:
        try:
            reply = self._engine.work.renew.submit([_renewal(each) for each in live])
        except HoldfastError:
            log.exception("could not renew %d leases", len(live))
            return
        self._asked.append(Asked(at=now, executions=live, reply=reply))
        reply.add_done_callback(lambda _: self.kick())

    def _hear(self) -> None:
        for asked in [each for each in self._asked if each.reply.done()]:
            self._asked.remove(asked)
            self._hear_of(asked)

    def _hear_of(self, asked: Asked) -> None:
        error = asked.reply.exception()
        if error is not None:
            log.error("could not renew %d leases: %s", len(asked.executions), error)
            if isinstance(error, StoreBusy):
                self._apart.update(asked.executions)
            return
        self._apart.difference_update(asked.executions)
        for execution, answer in zip(asked.executions, asked.reply.result(), strict=True):
            if answer.ok:
                execution.deadline = asked.at + self._engine.settings.lease
            elif not execution.reported:
                log.warning("%s is over: %s", execution, answer.detail or answer.reason)
                execution.end()

    def _look(self) -> float:
        pause = self._engine.settings.recovery
        try:
            pause = self.step()
        except Exception:
            log.exception("a heartbeat failed; the next one comes in %s s", pause)
        # Said before it looks: what begins after that look finds it so, and calls.
        self._resting = True
        if self._live():
            self._resting = False
            return min(pause, LOOK_EVERY)
        return pause


def _renewal(execution: Execution) -> Renewal:
    return Renewal(
        task_id=execution.task_id,
        token=execution.assignment.token,
        progress=execution.context.noted,
    )
