"""A pool in this process: claims what it has room for, runs it, keeps its leases."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, ShuttingDown
from holdfast.model.task import Assignment
from holdfast.threads import Running
from holdfast.worker.execution import Execution, Functions, Invocation, UnknownFunction
from holdfast.worker.heartbeat import Heartbeat

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    agents: Sequence[str] = ("default",)
    tags: Sequence[str] = ()
    concurrency: int = field(default_factory=lambda: os.cpu_count() or 1)


class Worker:
    """Runs plain functions in threads and coroutine functions on a loop of its own."""

    def __init__(self, engine: Engine, functions: Functions, options: WorkerOptions) -> None:
        self._engine = engine
        self._functions = functions
        self._options = options
        self._stopping = engine.threads.event()
        self._wake = engine.threads.event()
        self._lock = engine.threads.lock()
        self._running: dict[str, Execution] = {}
        self._heartbeat = Heartbeat(engine, self._executions)
        self._threads = ThreadPoolExecutor(options.concurrency, "holdfast-step")
        self._loop = asyncio.new_event_loop()
        self._parts: list[Running] = []

    def start(self) -> Self:
        threads = self._engine.threads
        self._engine.tasks.unhold_known(self._functions.knows)
        self._unsubscribe = [
            self._engine.on_hint(self._wake.set),
            self._engine.on_end(self._end_others),
        ]
        self._heartbeat.start()
        self._parts = [
            threads.start("holdfast-loop", self._loop.run_forever),
            threads.start("holdfast-worker", self._pull),
        ]
        return self

    def stop(self) -> None:
        """Claim nothing more, let what runs finish, and end."""
        self._stopping.set()
        self._wake.set()
        if self._parts:
            self._parts[1].join()
            for unsubscribe in self._unsubscribe:
                unsubscribe()
            self._threads.shutdown(wait=True)
            self._heartbeat.close()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._parts[0].join()
        self._loop.close()

    def run(self) -> None:
        """Work until interrupted, then drain."""
        with self:
            try:
                while not self._stopping.wait(1.0):
                    pass
            except KeyboardInterrupt:
                log.info("interrupted; letting running steps finish")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _executions(self) -> list[Execution]:
        with self._lock:
            return list(self._running.values())

    def _pull(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                taken = self._claim()
            except ShuttingDown:
                return
            except HoldfastError:
                log.exception("could not claim; trying again in %s s", self._engine.settings.poll)
                taken = 0
            if not taken:
                self._wake.wait(self._engine.settings.poll)
        while self._executions():
            self._wake.clear()
            if self._executions():
                self._wake.wait(self._engine.settings.poll)

    def _claim(self) -> int:
        room = self._options.concurrency - len(self._executions())
        if room <= 0:
            return 0
        # Measured from before the request, on a clock that counts suspend.
        asked = self._engine.clock.monotonic()
        assignments = self._engine.work.claim(
            self._options.name,
            agents=self._options.agents,
            tags=self._options.tags,
            count=room,
        )
        for assignment in assignments:
            self._begin(assignment, asked)
        return len(assignments)

    def _begin(self, assignment: Assignment, asked: float) -> None:
        timeout = assignment.task.timeout
        execution = Execution(
            engine=self._engine,
            assignment=assignment,
            ended=self._engine.threads.event(),
            deadline=asked + self._engine.settings.lease,
            timeout_at=None if timeout is None else self._engine.clock.monotonic() + timeout,
        )
        with self._lock:
            self._running[assignment.task.id] = execution
        if timeout is not None:
            self._heartbeat.kick()
        try:
            invocation = self._functions.bind(assignment, execution.context)
        except UnknownFunction as error:
            log.warning("%s", error)
            execution.hold_for_version()
            self._finish(execution)
        except Exception as error:  # noqa: BLE001 - arguments that do not fit are the step's failure
            execution.fail(error)
            self._finish(execution)
        else:
            self._run(execution, invocation)

    def _run(self, execution: Execution, invocation: Invocation) -> None:
        if invocation.asynchronous:
            future = asyncio.run_coroutine_threadsafe(execution.await_(invocation), self._loop)
            execution.stop = future.cancel
        else:
            future = self._threads.submit(execution.call, invocation)
        future.add_done_callback(lambda _: self._finish(execution))

    def _end_others(self, ended: Sequence[str]) -> None:
        """Stop at once what somebody else, a cancel above all, has brought to its end."""
        with self._lock:
            over = [self._running[each] for each in ended if each in self._running]
        for execution in over:
            if not execution.reported:
                execution.end()

    def _finish(self, execution: Execution) -> None:
        with self._lock:
            self._running.pop(execution.assignment.task.id, None)
        self._wake.set()
