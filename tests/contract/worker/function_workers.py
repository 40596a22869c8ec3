"""Workers for tests: one function for every task, on an engine with the ports a test chooses."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.task import Assignment
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Execution, Invocation
from holdfast.worker.pool.lifecycle import Worker
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from tests.contract.task_states import create, take
from tests.engines import healthy


class OneFunction:
    """A program that carries out every task with the same function of its context."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.returned = threading.Event()

    def bind(self, assignment: Assignment, context: AttemptContext) -> Invocation:
        assert assignment.attempt == context.attempt
        return Invocation(
            function=self._function,
            arguments={"ctx": context},
            encode=self._encode,
            asynchronous=inspect.iscoroutinefunction(self._function),
        )

    def _encode(self, result: object) -> object:
        self.returned.set()
        return result

    def has_function(self, workflow: str | None, step: str | None) -> bool:
        return (workflow, step) is not None

    def list_equipped(self, agents: Sequence[str]) -> tuple[str, ...]:
        """All of them, so that tasks without a function are run too."""
        return tuple(agents)

    def equip(self, assignment: Assignment) -> Assignment:
        return assignment


def worker_of(engine: Engine, function: Callable[[Any], Any], **options: Any) -> StoreWorker:
    return StoreWorker(engine, OneFunction(function), WorkerOptions(**options))


def store_worker(worker: Worker) -> StoreWorker:
    """The worker of a program, with all that the program does not see."""
    assert isinstance(worker, StoreWorker)
    return worker


@contextmanager
def started(url: str, **ports: Any) -> Iterator[Engine]:
    """An engine with all its loops; at the end the doctor finds nothing."""
    engine = Engine(url, **ports).start()
    with healthy(engine):
        yield engine


def execution_of(engine: Engine, timeout: float | None = None) -> Execution:
    """A task that was just claimed, as a worker holds it."""
    now = engine.clock.monotonic()
    execution = Execution(
        engine,
        take(engine, create(engine, timeout=timeout)),
        deadline=now + engine.settings.lease,
        timeout=timeout,
    )
    assert execution.begin()
    return execution
