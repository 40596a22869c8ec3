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
from holdfast.worker.pool.loop_watch import LoopWatch
from holdfast.worker.pool.step_threads import StepThreads

log = logging.getLogger("holdfast.worker")

BoundStep = tuple[Execution, Invocation]


class Arrival(NamedTuple):
    """Claimed tasks, and the time of their claim, from which the leases count."""

    claimed: Claimed
    claim_sent_at: float


class Runner:
    """The threads and the loop of a worker, in which at most `limit` steps run at one instant.

    `make_steps` makes steps of claimed tasks, `return_step` gives back those that cannot run, and
    `on_steps_waiting` is called when more steps wait than may begin.
    """

    def __init__(
        self,
        threads: Threads,
        make_steps: Callable[[Arrival], list[BoundStep]],
        return_step: Callable[[Execution, Exception], None],
        *,
        limit: int,
        on_steps_waiting: Callable[[], None],
    ) -> None:
        self._threads = threads
        self._make_steps = make_steps
        self._return_step = return_step
        self._on_steps_waiting = on_steps_waiting
        self._coroutines = 0
        self._step_threads: StepThreads[BoundStep | Arrival] = StepThreads(
            threads,
            "holdfast-step",
            self._run_job,
            limit=limit,
            is_coroutine=_is_coroutine,
            begin_coroutines=self._begin_coroutines,
        )

    def start(self) -> None:
        self._loop = make_step_loop()
        self._loop_watch = LoopWatch(self._loop)
        self._loop_thread: RunningThread = self._threads.start(
            "holdfast-loop", self._loop.run_forever
        )

    def look_at_loop(self) -> None:
        """Warn of a coroutine that keeps the loop from the others."""
        if self._coroutines:
            self._loop_watch.look()

    def is_inside(self) -> bool:
        """Whether this is the thread, the coroutine or the `asyncio.to_thread` of a step."""
        return _current_runner.get() is self

    def try_begin(self, arrival: Arrival) -> bool:
        """Have an idle step thread begin the claimed tasks; gives whether there was one."""
        return self._step_threads.try_next(arrival)

    def close(self) -> None:
        """End the threads and the loop once they have done what they have begun."""
        self._step_threads.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop_thread.join()
        self._loop.close()

    def run(self, steps: Sequence[BoundStep], *, free: bool = False) -> None:
        """Have steps begin in their turn; `free` says that a step thread calls, which takes one."""
        try:
            self._step_threads.run(steps, free=free)
        except Exception as error:  # noqa: BLE001 - it is the worker's, not the task's
            left = set(map(id, steps))
            for execution, _ in self.take_unbegun(lambda each: id(each) in left):
                self._return_step(execution, error)
        if self.has_steps_waiting:
            self._on_steps_waiting()

    def run_first(self, step: BoundStep) -> None:
        """Have a step begin at once, also if as many run as may."""
        if _is_coroutine(step):
            self._loop.call_soon_threadsafe(self._run_on_loop, [step], _do_nothing)
            return
        try:
            self._step_threads.run_first(step)
        except Exception as error:  # noqa: BLE001 - as above
            for execution, _ in self.take_unbegun(lambda each: each is step):
                self._return_step(execution, error)

    @property
    def has_steps_waiting(self) -> bool:
        """Whether more steps wait than may begin now."""
        return self._step_threads.has_jobs_waiting

    def take_unbegun(self, chosen: Callable[[BoundStep], bool]) -> list[BoundStep]:
        """Remove the chosen ones of the steps that have not begun, and return them."""
        taken = self._step_threads.take_unbegun(
            lambda job: not isinstance(job, Arrival) and chosen(job)
        )
        return [step for step in taken if not isinstance(step, Arrival)]

    def _run_job(self, job: BoundStep | Arrival) -> None:
        _current_runner.set(self)
        if isinstance(job, Arrival):
            # This thread takes the first of the functions next.
            self.run(self._make_steps(job), free=True)
            return
        execution, invocation = job
        if execution.begin():
            execution.run_function(invocation)

    def _begin_coroutines(self, jobs: Sequence[BoundStep | Arrival]) -> None:
        steps = [each for each in jobs if not isinstance(each, Arrival)]
        self._loop.call_soon_threadsafe(
            self._run_on_loop, steps, self._step_threads.end_coroutine_turn
        )

    def _run_on_loop(self, steps: Sequence[BoundStep], on_end: Callable[[], None]) -> None:
        for execution, invocation in steps:
            if not execution.begin():
                on_end()
                continue
            context = copy_context()
            context.run(_current_runner.set, self)
            task = self._loop.create_task(execution.run_coroutine(invocation), context=context)
            self._loop_watch.note_task(task, execution)
            self._coroutines += 1
            task.add_done_callback(lambda _: self._end_coroutine(on_end))
            execution.stop = partial(self._loop.call_soon_threadsafe, task.cancel)
            if execution.ended.is_set():
                execution.end()

    def _end_coroutine(self, on_end: Callable[[], None]) -> None:
        self._coroutines -= 1
        on_end()


def make_step_loop() -> asyncio.AbstractEventLoop:
    """A loop for coroutine functions, which does not tell of branches that were left for a wait."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_on_loop_error)
    return loop


def _is_coroutine(job: BoundStep | Arrival) -> bool:
    return not isinstance(job, Arrival) and job[1].asynchronous


def _do_nothing() -> None:
    pass


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors that no code awaits, except the waits for which branches were left."""
    if not isinstance(context.get("exception"), Suspended):
        loop.default_exception_handler(context)


_current_runner: ContextVar[Runner | None] = ContextVar("holdfast_runner", default=None)
