"""One attempt from its assignment to its report: bind, run, report, each a named step."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, TaskFailed
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment
from holdfast.threads import Event
from holdfast.worker.context import Context
from holdfast.worker.durable import AttemptEnded, Suspended

TRACEBACK_LINES = 30


class UnknownFunction(Exception):
    """No function of this process can run the task as it was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """A function with its arguments bound; `encode` turns its result into JSON."""

    function: Callable[..., object]
    arguments: dict[str, Any]
    encode: Callable[[object], object]

    @property
    def asynchronous(self) -> bool:
        return inspect.iscoroutinefunction(self.function)


class Functions(Protocol):
    """Where a worker finds what to run."""

    def bind(self, assignment: Assignment, context: Context) -> Invocation:
        """The call that carries out a task; raises `UnknownFunction` when there is none."""

    def knows(self, workflow: str | None, step: str | None) -> bool:
        """Whether there is a function for a step of a workflow, or for a lone task."""


@dataclass(kw_only=True)
class Execution:
    engine: Engine
    assignment: Assignment
    ended: Event
    deadline: float
    timeout_at: float | None
    context: Context = field(init=False)
    reported: bool = False
    stop: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.context = Context(self.engine, self.assignment, self.ended)

    def end(self) -> None:
        """Tell the step that its attempt is over; a coroutine is cancelled."""
        self.ended.set()
        if self.stop is not None:
            self.stop()

    def call(self, invocation: Invocation) -> None:
        """Run a plain function in this thread, and report."""
        try:
            result = invocation.function(**invocation.arguments)
        except Suspended as wait:
            self.suspend(wait)
        except BaseException as error:  # noqa: BLE001 - whatever a step raises is its report
            self.fail(error, retryable=not isinstance(error, TaskFailed))
        else:
            self.complete(invocation, result)

    async def await_(self, invocation: Invocation) -> None:
        """Run a coroutine function on the worker's loop, and report."""
        self.context.asynchronous = True
        try:
            awaitable = invocation.function(**invocation.arguments)
            if not isinstance(awaitable, Awaitable):
                message = f"{invocation.function!r} gave no awaitable"
                raise TypeError(message)  # noqa: TRY301 - reported like any other failure
            result = await awaitable
        except Suspended as wait:
            self.suspend(wait)
        except BaseException as error:  # noqa: BLE001 - whatever a step raises is its report
            self.fail(error, retryable=not isinstance(error, TaskFailed))
        else:
            self.complete(invocation, result)

    def complete(self, invocation: Invocation, result: object) -> None:
        try:
            output = invocation.encode(result)
            self._report(self.engine.work.complete.submit(*self._name, output))
        except Exception as error:  # noqa: BLE001 - a result that is not JSON is a failure
            self.fail(error, retryable=not isinstance(error, InvalidInput))

    def suspend(self, suspended: Suspended) -> None:
        """Give the task back until what it waits for is there."""
        self._report(
            self.engine.work.suspend.submit(*self._name, suspended.wait, note=suspended.note)
        )

    def fail(self, error: BaseException, *, retryable: bool = True) -> None:
        if isinstance(error, AttemptEnded) or self.ended.is_set():
            return
        described = {
            "type": type(error).__name__,
            "message": str(error)[:2_000].replace("\x00", "�"),
            "traceback": _printable(error),
        }
        self._report(self.engine.work.fail.submit(*self._name, described, retryable=retryable))

    def hold_for_version(self) -> None:
        """Give back what no function here can run, until a worker that can comes along."""
        self.engine.tasks.hold(self.assignment.task.id, "version", actor="worker")
        self.engine.work.release(*self._name)
        self.reported = True

    @property
    def _name(self) -> tuple[str, str]:
        return (self.assignment.task.id, self.assignment.token)

    def _report(self, reply: Future[TransitionResult]) -> None:
        self.reported = True
        reply.result()


def _printable(error: BaseException) -> list[str]:
    lines = "".join(traceback.format_exception(error)).splitlines()[-TRACEBACK_LINES:]
    return [line.encode("utf-8", "replace").decode().replace("\x00", "�") for line in lines]
