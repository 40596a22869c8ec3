"""Where steps run: plain functions in threads, coroutine functions on a loop of their own."""

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
from holdfast.worker.pool.step_threads import Crew

log = logging.getLogger("holdfast.worker")

Step = tuple[Execution, Invocation]


class Arrival(NamedTuple):
    """What was claimed, and when that was asked for: the leases count from then."""

    claimed: Claimed
    asked: float


class Runner:
    """`take_up` makes steps of what has arrived, and `give_back` takes those that cannot run."""

    def __init__(
        self,
        threads: Threads,
        take_up: Callable[[Arrival], list[Step]],
        give_back: Callable[[Execution, Exception], None],
    ) -> None:
        self._threads = threads
        self._take_up = take_up
        self._give_back = give_back
        self._crew: Crew[Step | Arrival] = Crew(threads, "holdfast-step", self._call)

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_tell_of)
        self._looping: RunningThread = self._threads.start("holdfast-loop", self._loop.run_forever)

    def inside(self) -> bool:
        """Whether this is the thread, the coroutine or the `asyncio.to_thread` of a step."""
        return _inside.get() is self

    def is_thread_of_step(self) -> bool:
        """Whether this is the thread of a plain function."""
        return self._crew.has_member_here()

    def offer(self, arrival: Arrival, *, free: bool = False) -> bool:
        """Have a thread that has nothing to do take up what has arrived; whether there was one.

        The thread of a step that has ended says that it is `free`.
        """
        return self._crew.offer(arrival, free=free)

    def close(self) -> None:
        """Let threads and loop go, once they have done what they have begun."""
        self._crew.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._looping.join()
        self._loop.close()

    def run(self, steps: Sequence[Step]) -> None:
        coroutines = [step for step in steps if step[1].asynchronous]
        if coroutines:
            self._loop.call_soon_threadsafe(self._run_on_loop, coroutines)
        functions = [step for step in steps if not step[1].asynchronous]
        if functions:
            self._run_in_threads(functions)

    def _run_in_threads(self, functions: list[Step]) -> None:
        try:
            self._crew.run(functions)
        except Exception as error:  # noqa: BLE001 - it is the worker's, not the task's
            for execution, _ in self._crew.take_back(functions):
                self._give_back(execution, error)

    def _call(self, job: Step | Arrival) -> None:
        _inside.set(self)
        if isinstance(job, Arrival):
            steps = self._take_up(job)
            # The first function here and now, and the rest wherever there is room.
            mine = next((step for step in steps if not step[1].asynchronous), None)
            self.run([step for step in steps if step is not mine])
            if mine is None:
                return
            job = mine
        execution, invocation = job
        execution.call(invocation)

    def _run_on_loop(self, coroutines: Sequence[Step]) -> None:
        for execution, invocation in coroutines:
            context = copy_context()
            context.run(_inside.set, self)
            task = self._loop.create_task(execution.await_(invocation), context=context)
            execution.stop = partial(self._loop.call_soon_threadsafe, task.cancel)
            if execution.ended.is_set():
                execution.end()


def _tell_of(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong where nobody looks, which a branch that is left for its wait has not."""
    if not isinstance(context.get("exception"), Suspended):
        loop.default_exception_handler(context)


_inside: ContextVar[Runner | None] = ContextVar("holdfast_runner", default=None)
