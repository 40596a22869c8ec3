"""Handles on tasks and runs: the id at once, the result when there is one."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeGuard, TypeVar

from holdfast.api.option_types import Duration
from holdfast.engine.core.context import USER
from holdfast.engine.core.sync_async import (
    name_coroutine,
    operation,
    reading,
    refuse_to_wait_in_writer,
)
from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Explanation
from holdfast.engine.explain.why_run import RunExplanation
from holdfast.engine.runs import Runs
from holdfast.engine.tasks import Tasks
from holdfast.errors import HoldfastError, TaskFailed
from holdfast.model.advice import Action, advise
from holdfast.model.result import TransitionResult
from holdfast.model.run import Run
from holdfast.model.status import RunStatus, Status, TaskKind
from holdfast.model.task import Task
from holdfast.model.units import parse_duration
from holdfast.store.deadlocks import has_open_transaction, is_inside_transaction, refuse_deadlock

T_co = TypeVar("T_co", covariant=True)
Row = dict[str, Any]
# Decodes the output of a step, by the name of the step; of a loop, the list of its items' outputs.
Decode = Callable[[str, Any], Any]


class PendingResult(Generic[T_co]):
    """`handle.result(timeout)` waits, `await handle.result.aio(timeout)` does not block.

    The thread that waits decodes the row, not the thread that wrote it: a type may run any code.
    """

    def __init__(
        self, engine: Engine, identifier: str, read: Callable[[Row], T_co], since: int | None
    ) -> None:
        self._engine = engine
        self._identifier = identifier
        self._read = read
        self._since = since

    def __call__(self, timeout: Duration | None = None) -> T_co:
        """Wait for the end: the result, or `TaskFailed` when there is none.

        A `timeout` (seconds, or "2m") raises TimeoutError, which tells how the task or run stands;
        the task or run itself goes on.
        """
        seconds = _read_timeout(timeout)
        future = self._wait(None if has_open_transaction() else self._since)
        try:
            if not future.done():
                refuse_to_wait_in_writer("result")
                refuse_deadlock("result(…)", self._engine.file)
            row = future.result(seconds)
        except TimeoutError:
            if seconds is None:
                raise
            raise TimeoutError(self._describe_timeout(seconds)) from None
        finally:
            future.cancel()
        return self._read(row)

    def aio(self, timeout: Duration | None = None) -> Coroutine[Any, Any, T_co]:
        """The result for a coroutine: await it, and other coroutines run meanwhile."""
        return name_coroutine(self._aio(timeout), "result")

    async def _aio(self, timeout: Duration | None) -> T_co:  # noqa: ASYNC109 - one signature
        seconds = _read_timeout(timeout)
        since = None if is_inside_transaction() else self._since
        asked = await asyncio.to_thread(self._wait, since)
        future = asyncio.wrap_future(asked)
        try:
            if not asked.done():
                refuse_deadlock("result.aio(…)", self._engine.file, blocking=False)
            row = await asyncio.wait_for(future, seconds)
        except TimeoutError:
            if seconds is None:
                raise
            raise TimeoutError(await asyncio.to_thread(self._describe_timeout, seconds)) from None
        finally:
            future.cancel()
        return await asyncio.to_thread(self._read, row)

    def _wait(self, since: int | None) -> Future[Row]:
        return self._engine.outcomes.wait(self._identifier, since)

    def _describe_timeout(self, seconds: float) -> str:
        late = f"{self._identifier} has not ended within {seconds:g} s, and goes on"
        ask = self._engine.why_run if is_run_id(self._identifier) else self._engine.why
        try:
            stands = f"; {ask(self._identifier).summary}"
        except HoldfastError:
            stands = ""
        return f"{late}{stands}; {advise(Action.PRINT_WHY, self._identifier)} tells more"


class Handle(ABC, Generic[T_co]):
    """The handle that `enqueue` and `start` return: the `id` of a task or run, and its `result`.

    `created` is false where the key had made the task or run before.
    """

    id: str
    created: bool
    _shown = "Handle"
    _engine: Engine
    _read: Callable[[Row], T_co]
    _since: int | None

    @abstractmethod
    def __init__(self) -> None:
        """Only Holdfast makes handles."""

    def _set(
        self,
        engine: Engine,
        identifier: str,
        read: Callable[[Row], T_co],
        *,
        created: bool,
        since: int | None = None,
    ) -> None:
        self._engine = engine
        self._read = read
        # Outcomes seen before the task or run was made cannot be of it.
        self._since = since if created else None
        self.id = identifier
        self.created = created

    def __repr__(self) -> str:
        return f"<{self._shown} {self.id}>"

    @property
    def result(self) -> PendingResult[T_co]:
        """Call it to wait for the end: `handle.result()`, `handle.result(timeout="2m")`.

        It gives what the function returned, or raises `TaskFailed` with the error. In a coroutine
        `await handle.result.aio()`.
        """
        return PendingResult(self._engine, self.id, self._read, self._since)

    @reading
    def status(self) -> Status | RunStatus:
        """The status as it is now, which for a task is a `Status` and for a run a `RunStatus`."""
        return self._get().status

    @reading
    def output(self) -> T_co | None:
        """What it gave, as `result` gives it; None unless it is done by now. It does not wait."""
        found = self._get()
        if found.status not in {Status.DONE, RunStatus.COMPLETED}:
            return None
        given = found.output if isinstance(found, Task) else None
        row = {"id": self.id, "status": found.status, "output": json.dumps(given), "error": None}
        return self._read(row)

    @reading
    def why(self) -> Explanation | RunExplanation:
        """Explain why it is not running, or what it does instead; print it."""
        engine = self._engine
        return engine.why_run(self.id) if is_run_id(self.id) else engine.why(self.id)

    @operation
    def cancel(self, *, actor: str = USER, connection: object = None) -> Future[TransitionResult]:
        """End it, and all below it, at once and for good.

        With a `connection` the cancel is part of the application's own transaction there.
        """
        return self._facade.cancel.submit(self.id, actor=actor, connection=connection)

    @operation
    def retry(self, *, actor: str = USER) -> Future[TransitionResult]:
        """Try it again after it has failed or was cancelled, with all that failed with it."""
        return self._facade.retry.submit(self.id, actor=actor)

    @property
    def _facade(self) -> Tasks | Runs:
        return self._engine.runs if is_run_id(self.id) else self._engine.tasks

    def _get(self) -> Task | Run:
        return self._facade.get(self.id)


class StoreHandle(Handle[T_co]):
    """A handle on a task or run of an engine."""

    def __init__(
        self,
        engine: Engine,
        identifier: str,
        read: Callable[[Row], T_co],
        *,
        created: bool,
        since: int | None = None,
    ) -> None:
        self._set(engine, identifier, read, created=created, since=since)


class RunHandle(Handle[Any]):
    """A handle on a run, and the way to its tasks."""

    _shown = "RunHandle"
    _decode: Decode

    @reading
    def task(self, address: str) -> Handle[Any]:
        """A handle on one task: `run.task("plan")`, `run.task("build.2.implement")`.

        Items count from 1: `build.2` is the second item, `build` the whole loop.
        `NotFound` says which steps exist, or when a task that does not exist yet will be made.
        """
        found = self._engine.runs.task(self.id, address)
        return StoreHandle(
            self._engine, found.id, partial(self._read_result_of, found), created=False
        )

    def _read_result_of(self, task: Task, row: Row) -> Any:  # noqa: ANN401 - what its function returns
        output = read_task_result(row)
        if task.kind is TaskKind.GROUP and task.item is not None:
            return self._decode(str(task.step), [output])[0]
        return self._decode(str(task.step), output)


class StoreRunHandle(RunHandle):
    """A handle on a run of an engine."""

    def __init__(
        self,
        engine: Engine,
        identifier: str,
        decode: Decode,
        *,
        created: bool,
        since: int | None = None,
    ) -> None:
        read = partial(read_run_result, engine, decode=decode)
        self._set(engine, identifier, read, created=created, since=since)
        self._decode = decode


def read_task_result(row: Row) -> Any:  # noqa: ANN401 - JSON is any value
    """The output of an ended task, as JSON; raises `TaskFailed` where it has none."""
    if row["status"] != Status.DONE:
        raise make_failure(row)
    return None if row["output"] is None else json.loads(row["output"])


def read_run_result(engine: Engine, row: Row, decode: Decode) -> Any:  # noqa: ANN401 - what its last steps return
    """The result of an ended run: the output of its last step, or of its last steps by name."""
    if row["status"] != RunStatus.COMPLETED:
        raise make_failure(row, engine.runs.failed_at(row["id"]))
    outputs = engine.runs.outputs(row["id"])
    decoded = {step: decode(step, output) for step, output in outputs.items()}
    return next(iter(decoded.values())) if len(decoded) == 1 else decoded


def make_failure(row: Row, step: str | None = None) -> TaskFailed:
    """The error for a row that ended without a result."""
    error = None if row["error"] is None else json.loads(row["error"])
    return TaskFailed(row["id"], row["status"], error, step)


def is_run_id(identifier: object) -> TypeGuard[str]:
    return isinstance(identifier, str) and identifier.startswith("r_")


def _read_timeout(timeout: Duration | None) -> float | None:
    return None if timeout is None else parse_duration("timeout", timeout)
