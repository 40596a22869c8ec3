"""Keeps the leases of running attempts, and ends those it can no longer vouch for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.errors import HoldfastError, StoreBusy
from holdfast.model.result import TransitionResult
from holdfast.model.task import Renewal
from holdfast.threads import PollingLoop
from holdfast.worker.attempt.execution import Execution
from holdfast.worker.store_port import Office

# What waits does so on a clock that stands still during suspend: it has to look at the other.
LOOK_EVERY = 1.0

log = logging.getLogger("holdfast.heartbeat")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A renewal under way; its lease counts from before it was sent."""

    at: float
    reply: Future[TransitionResult]


class Heartbeat:
    """Its own thread, so that a busy step cannot starve it; it never waits for the store."""

    def __init__(self, engine: Office, executions: Callable[[], Sequence[Execution]]) -> None:
        self._engine = engine
        self._executions = executions
        self._due = engine.clock.monotonic() + engine.settings.renewal
        # Each by itself: somebody may have locked the row of one of them.
        self._asked: dict[Execution, Asked] = {}
        self._resting = False
        loop = PollingLoop(engine.threads, "holdfast-heartbeat", self._look)
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
        free = [each for each in live if each not in self._asked]
        if now >= self._due and (free or not self._asked):
            self._due = now + self._engine.settings.renewal
            if free:
                self._ask(now, free)
            free = []
        moments = [self._due] if free or not self._asked else []
        for each in live:
            timeout = None if each.reported else each.timeout_at
            moments.append(each.deadline if timeout is None else min(each.deadline, timeout))
        # Of what has ended, whose answer is still to come, there is nothing more to do.
        rest = now + self._engine.settings.renewal
        return max(0.0, min(moments, default=rest) - now)

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

    def _ask(self, now: float, live: Sequence[Execution]) -> None:
        try:
            replies = self._engine.work.renew_each([_renewal(each) for each in live])
        except HoldfastError:
            log.exception("could not renew %d leases", len(live))
            return
        for execution, reply in zip(live, replies, strict=True):
            self._asked[execution] = Asked(at=now, reply=reply)
            reply.add_done_callback(lambda _: self.kick())

    def _hear(self) -> None:
        errors: list[BaseException] = []
        busy: list[Execution] = []
        for execution in [each for each, asked in self._asked.items() if asked.reply.done()]:
            asked = self._asked.pop(execution)
            error = asked.reply.exception()
            if error is not None:
                errors.append(error)
                if isinstance(error, StoreBusy) and not execution.ended.is_set():
                    busy.append(execution)
            else:
                self._hear_of(execution, asked.at, asked.reply.result())
        if errors:
            log.error("could not renew %d leases: %s", len(errors), errors[0])
        if busy:
            # It has waited for long: what is left of the lease may be less than until the next.
            self._ask(self._engine.clock.monotonic(), busy)

    def _hear_of(self, execution: Execution, asked_at: float, answer: TransitionResult) -> None:
        if answer.ok:
            execution.deadline = asked_at + self._engine.settings.lease
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
