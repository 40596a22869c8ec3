"""Runner: plain functions run in step threads, coroutine functions on a loop of their own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, NamedTuple

from holdfast.engine.claims.picker import Claimed
from holdfast.threads import RunningThread, Threads
from holdfast.worker.attempt.execution import Execution, Invocation
from holdfast.worker.attempt.waits import Suspended
from holdfast.worker.pool.step_threads import StepThreads

log = logging.getLogger("holdfast.worker")

BoundStep = tuple[Execution, Invocation]


class Arrival(NamedTuple):
    """Claimed tasks, and the time of their claim, from which the leases count."""

    claimed: Claimed
    claim_sent_at: float


class Runner:
    """The threads and the loop of a worker.

    `make_steps` makes steps of claimed tasks, and `return_step` gives back those that cannot run.
    """

    def __init__(
        self,
        threads: Threads,
        make_steps: Callable[[Arrival], list[BoundStep]],
        return_step: Callable[[Execution, Exception], None],
    ) -> None:
        self._threads = threads
        self._make_steps = make_steps
        self._return_step = return_step
        self._step_threads: StepThreads[BoundStep | Arrival] = StepThreads(
            threads, "holdfast-step", self._run_job
        )

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_on_loop_error)
        self._loop_thread: RunningThread = self._threads.start(
            "holdfast-loop", self._loop.run_forever
        )

    def is_inside(self) -> bool:
        """Whether this is the thread, the coroutine or the `asyncio.to_thread` of a step."""
        return _current_runner.get() is self

    def is_thread_of_step(self) -> bool:
        """Whether this is the thread of a plain function."""
        return self._step_threads.is_own_thread()

    def try_begin(self, arrival: Arrival, *, free: bool = False) -> bool:
        """Have an idle step thread begin the claimed tasks; gives whether there was one.

        `free` says that the caller is a step thread whose step has ended.
        """
        return self._step_threads.try_next(arrival, free=free)

    def close(self) -> None:
        """End the threads and the loop once they have done what they have begun."""
        self._step_threads.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop_thread.join()
        self._loop.close()

    def run(self, steps: Sequence[BoundStep]) -> None:
        coroutines = [step for step in steps if step[1].asynchronous]
        if coroutines:
            self._loop.call_soon_threadsafe(self._run_on_loop, coroutines)
        functions = [step for step in steps if not step[1].asynchronous]
        if functions:
            self._run_in_threads(functions)

    def _run_in_threads(self, functions: list[BoundStep]) -> None:
        try:
            self._step_threads.run(functions)
        except Exception as error:  # noqa: BLE001 - it is the worker's, not the task's
            for execution, _ in self._step_threads.take_unbegun(functions):
                self._return_step(execution, error)

    def _run_job(self, job: BoundStep | Arrival) -> None:
        _current_runner.set(self)
        if isinstance(job, Arrival):
            steps = self._make_steps(job)
            # The first function runs in this thread, and the rest wherever there is room.
            mine = next((step for step in steps if not step[1].asynchronous), None)
            self.run([step for step in steps if step is not mine])
            if mine is None:
                return
            job = mine
        execution, invocation = job
        execution.run_function(invocation)

    def _run_on_loop(self, coroutines: Sequence[BoundStep]) -> None:
        for execution, invocation in coroutines:
            context = copy_context()
            context.run(_current_runner.set, self)
            task = self._loop.create_task(execution.run_coroutine(invocation), context=context)
            execution.stop = partial(self._loop.call_soon_threadsafe, task.cancel)
            if execution.ended.is_set():
                execution.end()


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors that no code awaits, except the waits for which branches were left."""
    if not isinstance(context.get("exception"), Suspended):
        loop.default_exception_handler(context)


_current_runner: ContextVar[Runner | None] = ContextVar("holdfast_runner", default=None)
