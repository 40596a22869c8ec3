"""Lease renewal: renews the leases of running attempts, and ends those that are over.

A renewal tells the progress of an attempt too, and comes soon after there is a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import inf

from holdfast.errors import HoldfastError, StoreBusy
from holdfast.model.result import TransitionResult
from holdfast.model.task import Renewal
from holdfast.threads import PollingLoop
from holdfast.worker.attempt.execution import Execution
from holdfast.worker.store_port import StorePort

# Waiting uses a clock that stops during suspend; leases use one that does not, so it is looked at.
LOOK_EVERY = 1.0
# The progress of one attempt is told so often at the most.
PROGRESS_EVERY = 0.5

log = logging.getLogger("holdfast.heartbeat")


@dataclass(frozen=True, kw_only=True)
class RenewalRequest:
    """A renewal under way; the new lease counts from before it was sent."""

    at: float
    reply: Future[TransitionResult]


def _do_nothing() -> None:
    pass


class Heartbeat:
    """A thread of its own, so that a busy step cannot delay it; it never waits for the store.

    `on_look` is called each time that it looks at the attempts.
    """

    def __init__(
        self,
        store: StorePort,
        executions: Callable[[], Sequence[Execution]],
        on_look: Callable[[], object] = _do_nothing,
    ) -> None:
        self._store = store
        self._executions = executions
        self._on_look = on_look
        self._due = store.clock.monotonic() + store.settings.renewal
        # One request for each attempt, because another transaction may have locked one's row.
        self._renewals: dict[Execution, RenewalRequest] = {}
        self._resting = False
        # The time of the next look; infinite while there is one.
        self._looks_at = inf
        loop = PollingLoop(store.threads, "holdfast-heartbeat", self._run_step)
        self.start, self.close = loop.start, loop.close
        self._kick = loop.kick

    def note_claimed(self) -> None:
        """Note that tasks were claimed; a heartbeat that is not resting finds them by itself."""
        if self._resting:
            self._kick()

    def note_begun(self, execution: Execution) -> None:
        """Note that an execution has begun, whose timeout may come before the next look."""
        if execution.ends_at is not None and execution.ends_at < self._looks_at:
            self._kick()

    def note_progress(self, execution: Execution) -> None:
        """Note that an execution has a new progress, unless one is waiting to be told."""
        if (
            not execution.has_progress_to_tell
            and execution.context.latest_progress != execution.told_progress
        ):
            execution.has_progress_to_tell = True
            self._kick()

    def step(self) -> float:
        """Do what is due now; gives for how many seconds nothing will be due."""
        self._take_replies()
        now = self._store.clock.monotonic()
        for execution in self._list_live():
            self._end_if_over(execution, now)
        live = self._list_live()
        free = [each for each in live if each not in self._renewals]
        if now >= self._due and (free or not self._renewals):
            self._due = now + self._store.settings.renewal
            if free:
                self._renew(now, free)
            free = []
        elif telling := [each for each in free if now >= _tells_progress_at(each)]:
            self._renew(now, telling)
        moments = [self._due] if free or not self._renewals else []
        for each in live:
            over = None if each.reported else each.ends_at
            moments.append(each.deadline if over is None else min(each.deadline, over))
            # The answer to a renewal under way kicks.
            if each not in self._renewals:
                moments.append(_tells_progress_at(each))
        # Ended executions whose answers are still to come need nothing more.
        rest = now + self._store.settings.renewal
        return max(0.0, min(moments, default=rest) - now)

    def wait_for_replies(self) -> None:
        """Wait until the renewals under way are answered, as where time is moved by hand."""
        for asked in list(self._renewals.values()):
            asked.reply.exception()

    def _list_live(self) -> list[Execution]:
        return [each for each in self._executions() if not each.ended.is_set()]

    def _end_if_over(self, execution: Execution, now: float) -> None:
        # The lease first: an attempt that outslept its lease is lost, and did not run too long.
        if now >= execution.deadline:
            log.warning("%s could not be renewed before its lease ran out", execution)
            execution.end()
        elif not execution.reported and (late := execution.describe_overtime(now)) is not None:
            execution.fail(TimeoutError(late))
            execution.end()

    def _renew(self, now: float, live: Sequence[Execution]) -> None:
        try:
            replies = self._store.work.renew_each([_make_renewal(each, now) for each in live])
        except HoldfastError:
            log.exception("could not renew %d leases", len(live))
            return
        for execution, reply in zip(live, replies, strict=True):
            self._renewals[execution] = RenewalRequest(at=now, reply=reply)
            reply.add_done_callback(lambda _: self._kick())

    def _take_replies(self) -> None:
        errors: list[BaseException] = []
        busy: list[Execution] = []
        for execution in [each for each, asked in self._renewals.items() if asked.reply.done()]:
            asked = self._renewals.pop(execution)
            error = asked.reply.exception()
            if error is not None:
                errors.append(error)
                if isinstance(error, StoreBusy) and not execution.ended.is_set():
                    busy.append(execution)
            else:
                self._take_reply(execution, asked.at, asked.reply.result())
        if errors:
            log.error("could not renew %d leases: %s", len(errors), errors[0])
        if busy:
            # Renewed again at once, because the lease may end before the next regular renewal.
            self._renew(self._store.clock.monotonic(), busy)

    def _take_reply(self, execution: Execution, asked_at: float, answer: TransitionResult) -> None:
        if answer.ok:
            execution.deadline = asked_at + self._store.settings.lease
        elif not execution.reported:
            log.warning("%s is over: %s", execution, answer.detail or answer.reason)
            execution.end()

    def _run_step(self) -> float:
        pause = self._store.settings.recovery
        # Before the list is read: an execution that begins after that kicks.
        self._looks_at = inf
        try:
            pause = self.step()
            self._on_look()
        except Exception:
            log.exception("a heartbeat failed; the next one comes in %s s", pause)
        # Set before the list is read: an execution that begins after that sees it and kicks.
        self._resting = True
        if self._list_live():
            self._resting = False
            pause = min(pause, LOOK_EVERY)
        self._looks_at = self._store.clock.monotonic() + pause
        return pause


def _tells_progress_at(execution: Execution) -> float:
    if not execution.has_progress_to_tell:
        return inf
    return execution.told_progress_at + PROGRESS_EVERY


def _make_renewal(execution: Execution, now: float) -> Renewal:
    # Before the progress is read: a newer one that comes after that is told by another renewal.
    execution.has_progress_to_tell = False
    execution.told_progress, execution.told_progress_at = execution.context.latest_progress, now
    return Renewal(
        task_id=execution.task_id,
        token=execution.assignment.token,
        progress=execution.told_progress,
        usage=execution.context.latest_usage,
    )
