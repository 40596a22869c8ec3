"""Attempt execution: a real attempt, which ends or stands still where a test wants it to."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from holdfast.api.function_registry import FunctionRegistry
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.task import Assignment
from holdfast.testing.attempt_faults import Fault, FaultPoint, WorkerDied
from holdfast.worker.attempt.attempt_lease import AttemptLease
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.durable import Flow, TaskMemory
from holdfast.worker.attempt.execution import (
    Execution,
    Invocation,
    ReportAnswer,
    ReportEntry,
)
from holdfast.worker.attempt.json_values import decode_result
from holdfast.worker.files.state_directory import StateDirectory

Pause = Callable[[], None]


class FaultPoints:
    """The faults of one attempt, and the effects that it has done so far.

    A worker that stands still calls `pause`, in which another attempt may run.
    """

    def __init__(self, faults: list[Fault], lease: AttemptLease, pause: Pause) -> None:
        self._faults = faults
        self._lease = lease
        self._pause = pause
        self.effects: list[str] = []
        self.dead = False
        self.lost = False

    def reach(self, point: FaultPoint, name: object = None) -> None:
        """Have the fault happen that a test wants here, if there is one."""
        self.refuse_if_dead()
        number = len(self.effects) + (point is FaultPoint.BEFORE_EFFECT)
        for fault in [each for each in self._faults if each.is_at(point, name, number)]:
            self._faults.remove(fault)
            if fault.dies:
                # A lease that has ended lets nothing be reported.
                self._lease.set()
                self.dead = True
                raise WorkerDied(str(fault))
            self.lost = True
            self._pause()

    def refuse_if_dead(self) -> None:
        if self.dead:
            raise WorkerDied("its worker has died before")


class HarnessContext(AttemptContext):
    """The context of an attempt, which tells of the points of its effects."""

    def __init__(
        self,
        engine: Engine,
        assignment: Assignment,
        lease: AttemptLease,
        points: FaultPoints,
        state: StateDirectory,
    ) -> None:
        super().__init__(engine, assignment, lease)
        self._points = points
        # Found before the property of the base class, which asks the environment.
        self.__dict__["_directory"] = state

    def effect(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Do something once and remember what it gave, however often the step runs."""
        if not callable(function):
            return super().effect(name, function, *args, **kwargs)
        points, before = self._points, len(self._points.effects)

        def perform() -> Any:  # noqa: ANN401 - what the function gives
            points.reach(FaultPoint.BEFORE_EFFECT, name)
            points.effects.append(name)
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                return _reach_after(result, FaultPoint.BEFORE_REMEMBERING, lambda: True)
            points.reach(FaultPoint.BEFORE_REMEMBERING, name)
            return result

        async def _reach_after(
            awaited: Awaitable[Any], point: FaultPoint, performed: Callable[[], bool]
        ) -> Any:  # noqa: ANN401
            result = await awaited
            if performed():
                points.reach(point, name)
            return result

        def is_performed() -> bool:
            return name in points.effects[before:]

        result = self._run_operation(
            "effect",
            name,
            lambda memory: memory.effect(name, perform, partial(decode_result, function)),
        )
        if self.asynchronous:
            return _reach_after(result, FaultPoint.AFTER_EFFECT, is_performed)
        if is_performed():
            points.reach(FaultPoint.AFTER_EFFECT, name)
        return result

    def give_back_leases(self) -> None:
        """Let others have what the function held, unless its worker has died with it."""
        if not self._points.dead:
            super().give_back_leases()

    def _run_operation(
        self, method: str, given: object, call: Callable[[TaskMemory], Flow[Any]]
    ) -> Any:  # noqa: ANN401
        self._points.refuse_if_dead()
        return super()._run_operation(method, given, call)


class HarnessExecution(Execution):
    """An attempt whose faults happen where a test wants them, and which keeps how it ended."""

    answer: ReportAnswer | None = None
    exception: BaseException | None = None
    _told = "given back"

    def __init__(
        self,
        engine: Engine,
        assignment: Assignment,
        faults: list[Fault],
        pause: Pause,
        state: StateDirectory,
    ) -> None:
        now = engine.clock.monotonic()
        super().__init__(
            engine,
            assignment,
            deadline=now + engine.settings.lease,
            claimed_at=now,
            timeout=_find_timeout(assignment),
        )
        self.engine = engine
        self.points = FaultPoints(faults, self.ended, pause)
        self.context = HarnessContext(engine, assignment, self.ended, self.points, state)

    def complete(self, invocation: Invocation, result: object) -> bool:
        self._told = "completed"
        return super().complete(invocation, result)

    def fail(self, error: BaseException, *, retryable: bool = True) -> bool:
        self.exception = error
        return super().fail(error, retryable=retryable)

    def send(self, entry: ReportEntry) -> None:
        if entry.last:
            self.points.reach(FaultPoint.BEFORE_REPORT)
        super().send(entry)

    def on_answer(self, answer: ReportAnswer, *, last: bool) -> None:
        # What was reported first counts: a timeout reports before the function has returned.
        self.answer = self.answer or answer
        super().on_answer(answer, last=last)

    @property
    def outcome(self) -> str:
        """How the attempt ended, in the word that messages show."""
        if self.points.dead:
            return "died"
        if self.raised is not None:
            return "failed"
        if not isinstance(self.answer, TransitionResult):
            return "ended"
        if not self.answer.ok:
            return "failed" if self.answer.reason is Refusal.INVALID_OUTPUT else "refused"
        return self._told

    @property
    def problem(self) -> str | None:
        """What the function raised, or why its report was not taken."""
        answer = self.answer
        if self.raised is None and isinstance(answer, TransitionResult) and not answer.ok:
            return answer.detail
        return self.raised


def _find_timeout(assignment: Assignment) -> float | None:
    work = assignment.work
    # A command step watches its own timeout.
    return None if work is not None and work.runs_program else assignment.timeout


def find_function(
    functions: FunctionRegistry, assignment: Assignment
) -> Callable[..., object] | None:
    """The function of a program that carries out a task."""
    workflow = assignment.workflow if assignment.is_step else None
    return functions.find_function(workflow, assignment.step)
