"""A pool in this process: claims what it has room for, runs it, keeps its leases."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Self

from holdfast.engine import validation
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, ShuttingDown, StoreError
from holdfast.model.task import Assignment
from holdfast.model.text import clean_name
from holdfast.store.group import is_writer
from holdfast.threads import Running, program_ends
from holdfast.worker.execution import Execution, Functions, Invocation, UnknownFunction
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.versions import Versions

LOOK_EVERY = 0.1
HEAR_EVERY = 0.2
SHOWN = 10
MAX_CONCURRENCY = 10_000

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    name: str = field(default_factory=lambda: f"{_host()}-{os.getpid()}")
    agents: Sequence[str] = ("default",)
    tags: Sequence[str] = ()
    concurrency: int = field(default_factory=lambda: os.cpu_count() or 1)

    def __post_init__(self) -> None:
        clean_name("name", self.name)
        validation.agents(self.agents)
        validation.tags(self.tags)
        validation.number("concurrency", self.concurrency, least=1, most=MAX_CONCURRENCY)


class Worker:
    """Runs plain functions in threads and coroutine functions on a loop of its own.

    It logs to `holdfast.worker`: its start at INFO, steps that raised at WARNING.
    """

    def __init__(self, engine: Engine, functions: Functions, options: WorkerOptions) -> None:
        self._engine = engine
        self._functions = functions
        self._options = options
        self._started = False
        self._stopping = engine.threads.event()
        self._stopped = engine.threads.event()
        self._wake = engine.threads.event()
        self._lock = engine.threads.lock()
        self._running: set[Execution] = set()
        self._looked = engine.clock.monotonic()
        self._heartbeat = Heartbeat(engine, self._executions)
        self._versions = Versions(engine, functions)

    def start(self) -> Self:
        with self._lock:
            if self._started or self._stopping.is_set():
                raise InvalidInput("worker", "starts only once; make another with hf.worker()")
            self._started = True
        try:
            self._versions.lift()
        except BaseException:
            self._stopped.set()
            raise
        threads = self._engine.threads
        self._loop = asyncio.new_event_loop()
        self._unsubscribe: Sequence[Callable[[], None]] = (
            self._engine.on_hint(self._wake.set),
            self._engine.on_leave(self._end_others),
        )
        self._heartbeat.start()
        self._looping: Running = threads.start("holdfast-loop", self._loop.run_forever)
        threads.start("holdfast-worker", self._pull)
        log.info("%s has started", self)
        return self

    @property
    def stopping(self) -> bool:
        """Whether it claims nothing more."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Claim nothing more, let what runs finish, and end; a step that says so does not wait."""
        self._stopping.set()
        self._wake.set()
        if self._started and _inside.get() is not self and not is_writer():
            self._stopped.wait()

    def run(self) -> None:
        """Work until Ctrl-C or SIGTERM, then let running steps finish and return.

        A second signal ends the process at once; the leases of its steps run out, and another
        worker tries them again.
        """
        with _first_signal() as heard:
            self.start()
            while not (heard() or self._stopping.wait(HEAR_EVERY)):
                pass
            if heard():
                log.warning("interrupted; %s", self._waits_for())
            self.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def __str__(self) -> str:
        agents, tags = (", ".join(each) for each in (self._options.agents, self._options.tags))
        offer = f"agents {agents}" + (f", tags {tags}" if tags else "")
        many = f"up to {self._options.concurrency} steps at once"
        return f"worker {self._options.name} (process {os.getpid()}, {offer}, {many})"

    def _waits_for(self) -> str:
        running = sorted(str(each) for each in self._executions())
        if not running:
            return "nothing is running"
        more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
        return (
            f"waiting for {', '.join(running[:SHOWN])}{more}; a second Ctrl-C or SIGTERM stops "
            "now, and what was running is tried again when its lease has run out"
        )

    def _executions(self) -> list[Execution]:
        with self._lock:
            return list(self._running)

    def _pull(self) -> None:
        try:
            while True:
                self._wake.clear()
                if program_ends():
                    self._stopping.set()
                if self._stopping.is_set() and not self._executions():
                    return
                self._pull_once()
        finally:
            self._close()

    def _pull_once(self) -> None:
        taken, pause = 0, self._engine.settings.poll
        try:
            if not self._stopping.is_set():
                self._versions.lift()
                taken = self._claim()
            pause = self._look()
        except ShuttingDown:
            self._stopping.set()
        except Exception:
            log.exception("could not look for work; trying again in %s s", pause)
        if not taken:
            self._wake.wait(pause)

    def _close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._heartbeat.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._looping.join()
        self._loop.close()
        self._stopped.set()

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
            passing=self._versions.passed,
        )
        for assignment in assignments:
            self._begin(assignment, asked)
        return len(assignments)

    def _look(self) -> float:
        """Hear what another process ended; the answer is how soon to look again at the latest."""
        live = {each.key for each in self._executions() if not each.ended.is_set()}
        if not live:
            return self._engine.settings.poll
        now = self._engine.clock.monotonic()
        if now < self._looked + LOOK_EVERY:
            return LOOK_EVERY
        self._looked = now
        self._end_others(self._engine.work.left(live))
        return self._engine.settings.poll

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
            self._running.add(execution)
        self._heartbeat.kick()
        if self._stopping.is_set() or program_ends():
            # It was on its way when somebody said stop.
            self._return(execution, partial(self._release, execution))
            return
        try:
            invocation = self._functions.bind(assignment, execution.context)
        except Exception as error:  # noqa: BLE001 - it is the task's, not the worker's
            self._return(execution, partial(self._refuse, execution, error))
            return
        try:
            self._run(execution, invocation)
        except Exception as error:  # noqa: BLE001 - it is the worker's, not the task's
            self._stopping.set()
            log.error("%s cannot begin, so that this worker stops: %s", execution, error)  # noqa: TRY400
            self._return(execution, partial(self._release, execution))

    def _return(self, execution: Execution, report: Callable[[], None]) -> None:
        """Say what becomes of an attempt that never began."""
        try:
            report()
        except Exception:
            log.exception("%s could not be given back; its lease will run out", execution)
        self._finish(execution)

    def _run(self, execution: Execution, invocation: Invocation) -> None:
        if invocation.asynchronous:
            self._loop.call_soon_threadsafe(self._run_on_loop, execution, invocation)
        else:
            self._engine.threads.start("holdfast-step", lambda: self._call(execution, invocation))

    def _call(self, execution: Execution, invocation: Invocation) -> None:
        _inside.set(self)
        try:
            execution.call(invocation)
        finally:
            self._finish(execution)

    def _run_on_loop(self, execution: Execution, invocation: Invocation) -> None:
        context = copy_context()
        context.run(_inside.set, self)
        task = self._loop.create_task(execution.await_(invocation), context=context)
        task.add_done_callback(lambda _: self._finish(execution))
        execution.stop = lambda: self._loop.call_soon_threadsafe(task.cancel)
        if execution.ended.is_set():
            execution.end()

    def _refuse(self, execution: Execution, error: Exception) -> None:
        """No function for it: hold it. Arguments that do not fit: it has failed."""
        if isinstance(error, UnknownFunction):
            log.warning("%s", error)
            self._versions.hold(execution.assignment)
            self._release(execution)
        elif isinstance(error, StoreError):
            # What it needs could not be read: that says nothing of the step.
            log.warning("%s cannot begin: %s", execution, error)
            self._release(execution)
        else:
            execution.hear(execution.fail(error, retryable=not isinstance(error, InvalidInput)))

    def _release(self, execution: Execution) -> None:
        execution.hear(execution.release())

    def _end_others(self, left: Collection[tuple[str, int]]) -> None:
        """Stop at once what somebody else, a cancel above all, has brought to its end."""
        for execution in self._executions():
            if execution.key in left and not execution.reported:
                execution.end()

    def _finish(self, execution: Execution) -> None:
        with self._lock:
            self._running.discard(execution)
        self._wake.set()


# The worker that runs the step whose thread, coroutine or `asyncio.to_thread` this is.
_inside: ContextVar[Worker | None] = ContextVar("holdfast_worker", default=None)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).lstrip(".-") or "worker"


@contextmanager
def _first_signal() -> Iterator[Callable[[], bool]]:
    """Tell whether Ctrl-C or SIGTERM came, where signals can be heard at all.

    The second one is the system's to deal with: no thread of this process can hold it up.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    if before[signal.SIGINT] is not signal.default_int_handler:
        del before[signal.SIGINT]

    # It only takes note: to raise or to take a lock here would break into whatever runs just now.
    def note(number: int, _: FrameType | None) -> None:
        heard.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)

    for each in before:
        signal.signal(each, note)
    try:
        yield lambda: bool(heard)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
