"""Keeps the leases of running attempts, and ends those it can no longer vouch for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.model.task import Renewal
from holdfast.threads import Running
from holdfast.worker.execution import Execution

log = logging.getLogger("holdfast.heartbeat")


class Heartbeat:
    """Its own thread, so that a busy step cannot starve it."""

    def __init__(self, engine: Engine, executions: Callable[[], Sequence[Execution]]) -> None:
        self._engine = engine
        self._executions = executions
        self._stop = engine.threads.event()
        self._kick = engine.threads.event()
        self._thread: Running | None = None

    def start(self) -> None:
        self._thread = self._engine.threads.start("holdfast-heartbeat", self._loop)

    def close(self) -> None:
        self._stop.set()
        self._kick.set()
        if self._thread is not None:
            self._thread.join()

    def kick(self) -> None:
        """Something may have to end sooner than the next renewal."""
        self._kick.set()

    def step(self) -> None:
        """Renew every lease; end what was cancelled, lost, out of time or not renewed in time."""
        running = [each for each in self._executions() if not each.ended.is_set()]
        self._end_overdue(running)
        asked = self._engine.clock.monotonic()
        try:
            answers = self._engine.work.renew([_renewal(each) for each in running])
        except HoldfastError:
            log.exception("could not renew %d leases", len(running))
            answers = []
        for execution, answer in zip(running, answers, strict=False):
            if answer.ok:
                execution.deadline = asked + self._engine.settings.lease
            elif not execution.reported:
                log.warning("%s: %s", execution.assignment.task.id, answer.detail or answer.reason)
                execution.end()
        now = self._engine.clock.monotonic()
        for execution in running:
            if now >= execution.deadline:
                execution.end()

    def _end_overdue(self, running: Sequence[Execution]) -> None:
        now = self._engine.clock.monotonic()
        for execution in running:
            late = execution.timeout_at is not None and now >= execution.timeout_at
            if late and not execution.reported:
                execution.fail(
                    TimeoutError(f"ran longer than {execution.assignment.task.timeout} s")
                )
                execution.end()

    def _loop(self) -> None:
        while not self._stop.is_set():
            due = self._engine.clock.monotonic() + self._engine.settings.renewal
            while not self._stop.is_set() and self._engine.clock.monotonic() < due:
                self._kick.wait(max(0.0, self._next(due) - self._engine.clock.monotonic()))
                self._kick.clear()
                self._end_overdue(self._executions())
            if not self._stop.is_set():
                self.step()

    def _next(self, due: float) -> float:
        ends = [each.timeout_at for each in self._executions() if not each.ended.is_set()]
        return min([due, *(end for end in ends if end is not None)])


def _renewal(execution: Execution) -> Renewal:
    task = execution.assignment.task
    return Renewal(
        task_id=task.id, token=execution.assignment.token, progress=execution.context.noted
    )
