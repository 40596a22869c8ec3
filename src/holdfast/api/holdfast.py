"""`Holdfast`: one store, the functions of this program, and the workers that run them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any, ParamSpec, Self, TypeVar, overload

from holdfast.api.options import default_retry, read_concurrency, refuse_unknown, step_options
from holdfast.api.registry import Registry
from holdfast.api.task import TaskDecorator, TaskFunction
from holdfast.api.workflow import WorkflowBuilder
from holdfast.engine.doctor import Diagnosis
from holdfast.engine.edge import Call, reading
from holdfast.engine.engine import Engine
from holdfast.engine.lease_desk import Leases
from holdfast.engine.run_desk import Runs
from holdfast.engine.tasks import Tasks
from holdfast.engine.why import Explanation
from holdfast.engine.work import Work
from holdfast.errors import InvalidDefinition, ShuttingDown
from holdfast.model.result import TransitionResult
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name
from holdfast.settings import Settings
from holdfast.store.database import check_url
from holdfast.worker.pool import Worker, WorkerOptions

P = ParamSpec("P")
T = TypeVar("T")


class Holdfast:
    """Open a store by URL: `sqlite:///file.db` or `postgresql://…`, the same code on both.

    Nothing is opened before it is first used, so that a module may make one at import.
    """

    def __init__(self, url: str, **settings: Any) -> None:
        refuse_unknown("setting", settings, [each.name for each in fields(Settings)][1:])
        check_url(url)
        self.settings = Settings(url=url, **settings)
        self._retry = default_retry(self.settings)
        self._functions = Registry()
        self._workers: list[Worker] = []
        self._lock = threading.Lock()
        self._opened: Engine | None = None
        self._closed = False

    @property
    def engine(self) -> Engine:
        """The engine, opened and its schema brought up to date on first use."""
        with self._lock:
            if self._closed:
                raise ShuttingDown("this Holdfast is closed; open another")
            if self._opened is None:
                self._opened = Engine(self.settings.url, settings=self.settings).start()
            return self._opened

    @property
    def tasks(self) -> Tasks:
        return self.engine.tasks

    @property
    def runs(self) -> Runs:
        return self.engine.runs

    @property
    def work(self) -> Work:
        return self.engine.work

    @property
    def leases(self) -> Leases:
        return self.engine.leases

    @property
    def signal(self) -> Call[..., TransitionResult]:
        """`hf.signal(run_id, name, payload)`: what `wait_for` in that run waits for."""
        return self.engine.signals.send

    def transaction(self) -> AbstractContextManager[Any]:
        """A write transaction of your own on the store: pass what it gives as `connection`.

        It is apsw's connection on SQLite, psycopg's on PostgreSQL; leaving the block commits.
        """
        return self.engine.transaction()

    @reading
    def why(self, task_id: str) -> Explanation:
        """Explain, clause by clause, why a task is not running, or what it does instead."""
        return self.engine.why(task_id)

    @reading
    def doctor(self) -> Diagnosis:
        """Check every invariant of the live store."""
        return self.engine.doctor()

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, T], T]: ...

    @overload
    def task(self, function: Callable[P, T], /) -> TaskFunction[P, T, T]: ...

    @overload
    def task(self, /, *, name: str | None = None, **options: Any) -> TaskDecorator: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        **options: Any,
    ) -> TaskFunction[..., Any, Any] | TaskDecorator:
        """Make a function a job that can be enqueued: `@hf.task` or `@hf.task(max_attempts=5)`."""
        chosen = step_options(options, self._retry)

        def add(decorated: Callable[..., Any]) -> TaskFunction[..., Any, Any]:
            known = clean_name("task", name or decorated.__name__)
            template = NewTask(title=known, step=known, **chosen)
            made = TaskFunction[..., Any, Any](lambda: self.engine, decorated, template)
            if known in self._functions.tasks:
                raise InvalidDefinition(known, ["is already a task of this Holdfast"])
            self._functions.tasks[known] = made.signature
            return made

        return TaskDecorator(add) if function is None else add(function)

    def workflow(self, name: str, *, concurrency: Any = None) -> WorkflowBuilder:  # noqa: ANN401
        """Begin a workflow; add its steps with `@….step`."""
        clean_name("workflow", name)
        if name in self._functions.workflows:
            raise InvalidDefinition(name, ["is already a workflow of this Holdfast"])
        limit = read_concurrency(concurrency)
        made = WorkflowBuilder(lambda: self.engine, name, concurrency=limit, retry=self._retry)
        self._functions.workflows[name] = made
        return made

    def worker(self, **options: Any) -> Worker:
        """A worker for this program's functions: `with hf.worker(): …` or `hf.worker().run()`."""
        refuse_unknown("option", options, [each.name for each in fields(WorkerOptions)])
        worker = Worker(self.engine, self._functions, WorkerOptions(**options))
        with self._lock:
            self._workers.append(worker)
        return worker

    def close(self) -> None:
        """Stop the workers, write what was submitted, then close the store."""
        for worker in self._workers:
            worker.stop()
        with self._lock:
            opened, self._opened, self._closed = self._opened, None, True
        if opened is not None:
            opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)
