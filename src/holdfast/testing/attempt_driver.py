"""Attempt driver: claims ready tasks and runs their attempts, one after the other in this thread.

Claims, reports and what follows from them are those of the engine; only the choice of the thread,
and of the moment, is the test's.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context as ContextVariables
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard, TypeVar

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.core.sync_async import settle_future
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, InvalidInput, StoreError
from holdfast.ids import id_of
from holdfast.model.moment import count_microseconds
from holdfast.model.run import Run
from holdfast.model.status import Status
from holdfast.model.task import Assignment, Task
from holdfast.service.protocol.attempt_calls import AttemptCalls
from holdfast.testing.attempt_execution import HarnessExecution, find_function
from holdfast.testing.attempt_faults import Fault, FaultPoint, WorkerDied
from holdfast.testing.harness_stores import HarnessProgram, HarnessStores
from holdfast.testing.stubs import Stub, answer_step, replace_function
from holdfast.testing.targets import Target
from holdfast.worker.attempt.execution import Invocation, UnknownFunction
from holdfast.worker.pool.lease_renewal import Heartbeat
from holdfast.worker.pool.runner import make_step_loop
from holdfast.worker.secrets.secrets import Secrets
from holdfast.worker.steps.executors import Executors

T = TypeVar("T")
WORKER = "harness"
PAGE = 1_000
# Seconds between two looks at what a worker of the program runs.
LOOK_EVERY = 0.002


class NotEnded(HoldfastError, TimeoutError):
    """A test waits for the end of a task or run, and nothing is left to do for it now."""


class TooManyAttempts(HoldfastError):
    """The work of a test does not come to rest: attempts follow attempts."""


@dataclass(frozen=True, kw_only=True)
class RanAttempt:
    """An attempt that a test ran: its step, its number, and how it ended.

    The `outcome` is completed, failed, given back (for a wait), died, refused (too late) or ended
    (cancelled or lost). The `effects` are those whose functions were called, in their order; the
    `exception` is the one that failed it.
    """

    step: str
    workflow: str | None
    task_id: str
    run_id: str | None
    attempt: int
    outcome: str
    error: str | None
    effects: tuple[str, ...]
    exception: BaseException | None
    function: Callable[..., object] | None

    def __str__(self) -> str:
        said = f": {self.error}" if self.error else ""
        return f"{self.step}, attempt {self.attempt}, {self.outcome}{said}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The agents that the worker of a test serves, and the tags that it offers."""

    agents: list[str]
    tags: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTask:
    """A task in a store of the test, and the function that carries it out, if there is one."""

    task: Task
    function: Callable[..., object] | None

    def is_of(self, target: Target) -> bool:
        return target.means(self.function, self.task.step, self.task.title)


class AttemptDriver:
    """Runs attempts on the stores of the programs that a test uses.

    Where the program has started a worker itself, the driver waits for what that worker runs.
    """

    def __init__(self, stores: HarnessStores, clock: ManualClock, *, commands: bool) -> None:
        self._stores = stores
        self._clock = clock
        self._commands = commands
        self.history: list[RanAttempt] = []
        self.stubs: list[Stub] = []
        self.faults: list[Fault] = []
        self.missed_faults: list[Fault] = []
        # Tasks that nothing here can carry out, each with the reason.
        self.left: dict[str, str] = {}
        self._executing: list[HarnessExecution] = []
        self._offers: dict[Engine, Offer] = {}
        # The workflow of each run that was looked at.
        self._workflows: dict[str, str] = {}
        self._executors: dict[Engine, Executors] = {}
        self._heartbeats: dict[Engine, Heartbeat] = {}
        self._loops: dict[int, asyncio.AbstractEventLoop] = {}

    @property
    def is_inside_step(self) -> bool:
        """Whether a step is under way, so that the caller is a part of it."""
        return bool(self._executing)

    def run_until_idle(self, limit: int) -> list[RanAttempt]:
        """Run attempts until no task is ready; returns them in their order."""
        if _is_in_loop():
            # No coroutine can run here beside that loop, nor a function that begins another one.
            return self._call_in_thread(partial(self._run_until_idle, limit))
        return self._run_until_idle(limit)

    def _run_until_idle(self, limit: int) -> list[RanAttempt]:
        before = len(self.history)
        while self._run_next():
            if len(self.history) > before + limit:
                raise TooManyAttempts(_describe_rush(self.history[before:], limit))
        return self.history[before:]

    def _call_in_thread(self, call: Callable[[], T]) -> T:
        called: Future[T] = Future()

        def run() -> None:
            settle_future(called, call)
            if (loop := self._loops.pop(threading.get_ident(), None)) is not None:
                _close_loop(loop)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return called.result()

    def find_next_due(self) -> int | None:
        """The time at which something is due next on any of the stores."""
        found = [each.recovery.find_next_due() for each in self._list_engines()]
        return min((each for each in found if each is not None), default=None)

    def pass_time(self, moment: int) -> None:
        """Let the time come, during which steps that are under way keep their leases."""
        while self._executing and (left := moment - self._clock.now()) > 0:
            renewal = min(each.store.settings.renewal for each in self._executing)
            self._clock.advance(min(left / MICROSECONDS, renewal))
            self._beat()
        self.move_clock(moment)

    def move_clock(self, moment: int) -> None:
        """Let the time come at once, as where every worker stands still meanwhile."""
        left = moment - self._clock.now()
        if left > 0:
            self._clock.advance(left / MICROSECONDS)
        for engine in self._list_engines():
            engine.recovery.step()

    def list_tasks(self) -> Iterator[StoredTask]:
        """All tasks of all stores, the oldest first."""
        for program in self._list_by_store():
            found: list[Task] = []
            while page := program.engine.tasks.list(
                limit=PAGE, after=found[-1].id if found else None
            ):
                found += page
            for task in reversed(found):
                workflow = self._find_workflow(program.engine, task)
                function = self._find_function(program.engine, workflow, task.step)
                yield StoredTask(task=task, function=function)

    def _find_workflow(self, engine: Engine, task: Task) -> str | None:
        if task.run_id is None:
            return None
        if task.run_id not in self._workflows:
            self._workflows[task.run_id] = engine.runs.get(task.run_id).workflow
        return self._workflows[task.run_id]

    def _find_function(
        self, engine: Engine, workflow: str | None, step: str | None
    ) -> Callable[..., object] | None:
        """The function of any program on the same store."""
        found = (each.find_function(workflow, step) for each in self._list_beside(engine))
        return next((each for each in found if each is not None), None)

    def _list_beside(self, engine: Engine) -> list[HarnessProgram]:
        """The programs on the store of an engine."""
        url = engine.settings.url
        return [each for each in self._stores.list_programs() if each.engine.settings.url == url]

    def list_runs(self) -> Iterator[Run]:
        """All runs of all stores, the oldest first."""
        for program in self._list_by_store():
            found: list[Run] = []
            while page := program.engine.runs.list(
                limit=PAGE, after=found[-1].id if found else None
            ):
                found += page
            yield from reversed(found)

    def find_engine(self, identifier: object) -> Engine:
        """The engine of the store with a task or run."""
        for engine in self._list_engines():
            with suppress(HoldfastError):
                name = str(id_of(identifier))
                _ = engine.runs.get(name) if name.startswith("r_") else engine.tasks.get(name)
                return engine
        raise InvalidInput("handle", f"{identifier!r} is no task or run of this test")

    def close(self) -> None:
        for loop in self._loops.values():
            _close_loop(loop)

    def _list_engines(self) -> list[Engine]:
        return [each.engine for each in self._list_by_store()]

    def _list_by_store(self) -> list[HarnessProgram]:
        """One program for each store."""
        programs = self._stores.list_programs()
        return list({each.engine.settings.url: each for each in reversed(programs)}.values())

    def _run_next(self) -> bool:
        """Run one attempt of the first store with a ready task; gives whether there was one."""
        for program in self._list_by_store():
            if (assignment := self._claim(program.engine)) is not None:
                self._run_attempt(program, assignment)
                return True
        return self._wait_for_workers()

    def _wait_for_workers(self) -> bool:
        """Wait for workers that the program has started; gives whether one of them is at work."""
        for program in self._stores.list_programs():
            if any(not each.stopping for each in program.list_workers()):
                names = {each.name for each in program.engine.workers.list()}
                running = program.engine.tasks.list(status=Status.RUNNING, limit=PAGE)
                if any(each.lease is not None and each.lease.owner in names for each in running):
                    time.sleep(LOOK_EVERY)
                    return True
        return False

    def _claim(self, engine: Engine) -> Assignment | None:
        if (claimed := self._claim_offered(engine)) is not None:
            return claimed
        # What has become due, or free, since the last claim, and whom it is for.
        engine.recovery.step()
        self._offers[engine] = self._find_offer(engine)
        return self._claim_offered(engine)

    def _claim_offered(self, engine: Engine) -> Assignment | None:
        offer = self._offers.get(engine)
        if offer is None or not offer.agents:
            return None
        found = engine.work.claim(
            WORKER, agents=offer.agents, tags=offer.tags, passing=sorted(self.left)
        )
        return found[0] if found else None

    def _find_offer(self, engine: Engine) -> Offer:
        """The agents and tags of all that is queued: the worker of a test serves everybody."""
        agents: set[str] = set()
        tags: set[str] = set()
        after: str | None = None
        while page := engine.tasks.list(status=Status.QUEUED, limit=PAGE, after=after):
            agents |= {each.agent for each in page}
            tags |= {tag for each in page for tag in each.tags}
            after = page[-1].id
        return Offer(agents=sorted(agents), tags=sorted(tags))

    def _run_attempt(self, claimer: HarnessProgram, assignment: Assignment) -> None:
        program = self._choose_program(claimer, assignment)
        function = find_function(program.stores.functions, assignment)
        faults = [each for each in self.faults if each.matches(assignment, function)]
        self.faults = [each for each in self.faults if each not in faults]
        pause = partial(self._lose_lease, program.engine, assignment)
        execution = HarnessExecution(program.engine, assignment, faults, pause, program.state)
        finished = threading.Event()
        execution.on_finished = lambda _: finished.set()
        try:
            invocation = self._bind(program, execution, function)
        except UnknownFunction as error:
            self.left[assignment.task_id] = str(error)
            execution.finish_with(execution.release)
            finished.wait()
            return
        except StoreError:
            raise
        except HoldfastError as error:
            execution.finish_with(partial(execution.fail, retryable=False), error)
        else:
            self._execute(execution, invocation)
        if execution.points.dead:
            self._let_lease_run_out(program.engine, assignment)
        else:
            finished.wait()
        # Those that did not happen, because the attempt never came to their points.
        self.missed_faults += faults
        self._note(execution, function)
        if _ends_test(execution.exception):
            raise execution.exception

    def _choose_program(self, claimer: HarnessProgram, assignment: Assignment) -> HarnessProgram:
        """The program on the same store that has the function of a task."""
        for program in self._list_beside(claimer.engine):
            if find_function(program.stores.functions, assignment) is not None:
                return program
        return claimer

    def _bind(
        self,
        program: HarnessProgram,
        execution: HarnessExecution,
        function: Callable[..., object] | None,
    ) -> Invocation:
        assignment, context = execution.assignment, execution.context
        stub = next(
            (each for each in reversed(self.stubs) if each.matches(assignment, function)), None
        )
        if assignment.work is None and function is not None:
            real = self._find_executors(program).bind(assignment, context)
            return real if stub is None else replace_function(stub, real, context)
        if stub is not None:
            effects = partial(program.engine.work.effects, assignment.task_id)
            return answer_step(stub, assignment, context, effects)
        if assignment.work is None or not (self._commands or assignment.work.external):
            raise UnknownFunction(_describe_missing(assignment))
        return self._find_executors(program).bind(assignment, context)

    def _find_executors(self, program: HarnessProgram) -> Executors:
        engine = program.engine
        if engine not in self._executors:
            self._executors[engine] = Executors(
                engine,
                program.stores.functions,
                partial(AttemptCalls, engine),
                state=program.state,
                secrets=Secrets(engine.settings.url),
            )
        return self._executors[engine]

    def _execute(self, execution: HarnessExecution, invocation: Invocation) -> None:
        with self._executing_now(execution), suppress(WorkerDied):
            if not execution.begin():
                return
            execution.points.reach(FaultPoint.BEGIN)
            if (longest := invocation.options.idle_timeout) is not None:
                execution.limit_silence(longest)
            began = time.monotonic()
            if invocation.asynchronous:
                self._run_coroutine(execution, invocation)
            else:
                # As in a worker, where no context variable of another step or caller is seen.
                ContextVariables().run(execution.run_function, invocation)
            _warn_of_overtime(execution, time.monotonic() - began)

    @contextmanager
    def _executing_now(self, execution: HarnessExecution) -> Iterator[None]:
        self._find_heartbeat(execution.engine)
        self._executing.append(execution)
        stop_listening = execution.engine.on_attempts_ended(partial(_end_attempt, execution))
        try:
            yield
        finally:
            stop_listening()
            self._executing.remove(execution)

    def _run_coroutine(self, execution: HarnessExecution, invocation: Invocation) -> None:
        loop = self._loops.get(threading.get_ident())
        if loop is None:
            loop = self._loops[threading.get_ident()] = make_step_loop()
        task = loop.create_task(execution.run_coroutine(invocation), context=ContextVariables())
        execution.stop = partial(loop.call_soon_threadsafe, task.cancel)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    def _lose_lease(self, engine: Engine, assignment: Assignment) -> None:
        """Stand still until the lease is lost, and all else that is ready has been done."""
        self._let_lease_run_out(engine, assignment)
        self.run_until_idle(PAGE)

    def _let_lease_run_out(self, engine: Engine, assignment: Assignment) -> None:
        lease = engine.tasks.get(assignment.task_id).lease
        if lease is not None and lease.owner == WORKER:
            self.move_clock(count_microseconds(lease.expires_at) + 1)

    def _find_heartbeat(self, engine: Engine) -> Heartbeat:
        if engine not in self._heartbeats:
            self._heartbeats[engine] = Heartbeat(
                engine, lambda: [each for each in self._executing if each.engine is engine]
            )
        return self._heartbeats[engine]

    def _beat(self) -> None:
        for heartbeat in self._heartbeats.values():
            heartbeat.step()
            heartbeat.wait_for_replies()

    def _note(self, execution: HarnessExecution, function: Callable[..., object] | None) -> None:
        assignment = execution.assignment
        self.history.append(
            RanAttempt(
                step=assignment.name,
                workflow=assignment.workflow,
                task_id=assignment.task_id,
                run_id=assignment.run_id,
                attempt=assignment.attempt,
                outcome=execution.outcome,
                error=execution.problem,
                effects=tuple(execution.points.effects),
                exception=execution.exception,
                function=function,
            )
        )


def _ends_test(error: BaseException | None) -> TypeGuard[BaseException]:
    """Whether an error is none of the step's: Ctrl-C, a timeout of the test, `pytest.fail`."""
    return error is not None and not isinstance(
        error, Exception | SystemExit | GeneratorExit | asyncio.CancelledError | WorkerDied
    )


def _end_attempt(execution: HarnessExecution, ended: Sequence[tuple[str, int]]) -> None:
    if execution.key in ended and not execution.reported:
        execution.end()


def _warn_of_overtime(execution: HarnessExecution, seconds: float) -> None:
    """Tell that a worker would have ended a step, for which the time of the test stood still."""
    if execution.timeout is not None and seconds > execution.timeout:
        step, most = execution.assignment.name, execution.timeout
        warnings.warn(
            f"{step!r} really took {seconds:.3g} s, longer than its timeout of {most:g} s, at "
            "which a worker ends it. The time of a test stands still: call harness.advance(…) in "
            "the step to have the timeout come",
            stacklevel=2,
        )


def _describe_missing(assignment: Assignment) -> str:
    of = f" of {assignment.workflow}" if assignment.workflow else ""
    named = f"{assignment.name!r}{of}"
    work, give = assignment.work, f"give it answers: harness.stub({assignment.name!r}, …)"
    if work is None:
        return f"no function of this test carries out {named}; {give}"
    if work.external:
        return f"{named} is done by a worker elsewhere; {give}"
    what = "makes an HTTP call" if work.http is not None else "starts a command"
    return f"{named} {what}, which a test does only if it is told to; {give}"


def _describe_rush(ran: Sequence[RanAttempt], limit: int) -> str:
    counts = Counter(each.step for each in ran).most_common(3)
    often = ", ".join(f"{step} {times} times" for step, times in counts)
    return f"more than {limit} attempts have run without an end: {often}; the last: {ran[-1]}"


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _close_loop(loop: asyncio.AbstractEventLoop) -> None:
    left: set[asyncio.Task[Any]] = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
