"""The class `Holdfast`: one store, the functions of this program, and the workers that run them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from holdfast.api.archive import Archive
from holdfast.api.call_concurrency import check_call_concurrency
from holdfast.api.function_registry import FunctionRegistry, make_executors
from holdfast.api.handle import (
    Handle,
    StoreHandle,
    StoreRunHandle,
    is_run_id,
    read_task_result,
)
from holdfast.api.hook import HookFunction, WatchedEnds, define_hook
from holdfast.api.open_stores import OpenStore, OpenStores
from holdfast.api.option_types import (
    Duration,
    FixedConcurrency,
    HookOptions,
    StoreSettings,
    TaskOptions,
    WorkerKeywords,
)
from holdfast.api.options import (
    default_retry,
    read_concurrency,
    read_function_options,
    read_seconds,
    read_settings,
    read_step_options,
    refuse_unknown,
)
from holdfast.api.plan import Plan, StorePlan
from holdfast.api.program_engine import ProgramEngine
from holdfast.api.signature import function_name
from holdfast.api.task import NoContext, ProgramTask, TaskDecorator, TaskFunction
from holdfast.api.workflow import WorkflowBuilder, WorkflowFile
from holdfast.engine.core.context import USER
from holdfast.engine.core.sync_async import map_future, operation, reading
from holdfast.engine.engine import Engine, engine_of
from holdfast.engine.explain.doctor import Diagnosis
from holdfast.engine.explain.explanation import Explanation
from holdfast.engine.explain.why_run import RunExplanation
from holdfast.engine.runs import Runs
from holdfast.engine.surroundings.hooks import Hooks
from holdfast.engine.surroundings.leases import Leases
from holdfast.engine.surroundings.schedules import Schedules
from holdfast.engine.surroundings.workers import Workers
from holdfast.engine.tasks import Tasks
from holdfast.engine.work import Work
from holdfast.errors import InvalidDefinition, InvalidInput, ShuttingDown
from holdfast.ids import AnyId, id_of
from holdfast.model.hook import RUN_ENDS
from holdfast.model.result import TransitionResult
from holdfast.model.status import PlanningPhase
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name
from holdfast.model.verdict import Comments
from holdfast.settings import Settings
from holdfast.store.database import check_url
from holdfast.store.deadlocks import declare_wait
from holdfast.worker.attempt.step_context import StepContext
from holdfast.worker.pool.lifecycle import Worker
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions

P = ParamSpec("P")
# What a worker fills: the parameter of a function that comes first, where it is a context.
C = TypeVar("C", bound=StepContext)
T = TypeVar("T")


class PeopleOperations(ABC):
    """The operations for people: signals, approvals, rejections and answers."""

    @abstractmethod
    def __holdfast_engine__(self) -> Engine: ...

    @operation
    def signal(  # noqa: PLR0913 - what is sent, who sends it, and in which transaction
        self,
        target: AnyId,
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        actor: str = USER,
        connection: object = None,
    ) -> Future[TransitionResult]:
        """Send a run, or a task without one, what its `wait_for` waits for; a `key` once.

        The target is an id, a handle, or the key of the run or task.
        With a `connection` the signal is part of the application's own transaction there.
        """
        return engine_of(self).signals.send.submit(
            target, name, payload, key=key, actor=actor, connection=connection
        )

    @operation
    def approve(
        self, task: AnyId, note: object = None, *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Let an approval pass, or a task that waits for one run again: `run.task("approve")`."""
        return engine_of(self).tasks.approve.submit(task, note, actor=actor)

    @operation
    def reject(
        self,
        task: AnyId,
        reason: object = None,
        *,
        comments: Comments = (),
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Fail an approval, or a task that waits for one; the reason is its error.

        An approval with `on_failure: {goto}` goes back to that step instead, with the reason and
        the comments as its feedback: `comments=[{"file": "a.py", "line": 3, "text": "why?"}]`.
        """
        return engine_of(self).tasks.reject.submit(task, reason, comments=comments, actor=actor)

    @operation
    def answer(self, task: AnyId, answer: object, *, actor: str = USER) -> Future[TransitionResult]:
        """Answer what a step asked with `ctx.ask(…)`; its question is in `hf.tasks.get(id)`."""
        return engine_of(self).tasks.answer.submit(task, answer, actor=actor)


class Holdfast(PeopleOperations):
    """Open a store by URL: `sqlite:///file.db` or `postgresql://…`, the same code on both.

    Nothing is opened before it is first used, so that a module may make one at import. The
    settings are the fields of `Settings`, by name; durations may be written "30s":
    `Holdfast(url, lease="30s", max_attempts=5)`.
    """

    def __init__(self, url: str, **settings: Unpack[StoreSettings]) -> None:
        if not isinstance(url, str):
            reason = f"is a {type(url).__name__}; pass a text, sqlite:///file.db or postgresql://…"
            raise InvalidInput("url", reason)
        check_url(url)
        self.settings = Settings(url=url, **read_settings(settings))
        self._retry = default_retry(self.settings)
        self._program = ProgramEngine(
            self.settings, self.__holdfast_engine__, lambda: self._stores.current.engine is not None
        )
        self._functions = FunctionRegistry(self._program)
        self._stores = OpenStores(self.settings, self._functions)

    def __holdfast_engine__(self) -> Engine:
        store = self._stores.current
        with store.lock:
            if store.closed:
                raise ShuttingDown("this Holdfast is closed; open another")
            if store.engine is None:
                store.engine = self._open(store)
            return store.engine

    def _open(self, store: OpenStore) -> Engine:
        engine = store.open_engine(self.settings)
        try:
            engine.hooks.register([each.definition for each in self._functions.hooks.values()])
            self._program.write_declared(engine)
        except BaseException:
            engine.close()
            raise
        return engine

    @property
    def tasks(self) -> Tasks:
        """Single tasks: create, list, look at, hold, retry, cancel, edit them."""
        return engine_of(self).tasks

    @property
    def runs(self) -> Runs:
        """Runs of workflows: start, list, look at, pause, retry, cancel them."""
        return engine_of(self).runs

    @property
    def work(self) -> Work:
        """The worker's protocol, for one of your own: claim, renew, complete, fail, release."""
        return engine_of(self).work

    @property
    def leases(self) -> Leases:
        """Named leases, each a lock with a time limit and a fence: acquire, renew, release."""
        return engine_of(self).leases

    @property
    def schedules(self) -> Schedules:
        """Schedules: put, list, look at, pause, resume and remove them, preview their ticks."""
        return engine_of(self).schedules

    @property
    def workers(self) -> Workers:
        """The workers that live, in whatever process: list, drain and evict them."""
        return engine_of(self).workers

    @property
    def hooks(self) -> Hooks:
        """What follows the ends of runs and lone tasks: list and remove; `@hf.on` adds."""
        return engine_of(self).hooks

    def transaction(self) -> AbstractContextManager[Any]:
        """A write transaction of your own on the store: pass what it gives as `connection`.

        It is apsw's connection on SQLite, psycopg's on PostgreSQL; leaving the block commits.
        """
        return engine_of(self).transaction()

    @reading
    def why(
        self,
        what: AnyId,
        *,
        agents: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Explanation | RunExplanation:
        """Explain, clause by clause, why a task is not running, or what it does instead.

        Of a run it tells the holds, and one line for each task that is not done. With `agents`
        and `tags`, as a worker with these would find it. Takes an id, a key or a handle; print it.
        """
        identifier = engine_of(self).find(what)
        if is_run_id(identifier):
            return engine_of(self).why_run(identifier, agents=agents, tags=tags)
        return engine_of(self).why(identifier, agents=agents, tags=tags)

    @reading
    def handle(self, identifier: AnyId) -> Handle[Any]:
        """A handle on a task or run: by its id, its key "order-7", or a step "key:order-7:pack".

        Its result is JSON, as no type is known for it.
        """
        engine = engine_of(self)
        known = engine.find(identifier)
        if is_run_id(known):
            engine.runs.get(known)
            return StoreRunHandle(engine, known, lambda _, output: output, created=False)
        if engine.tasks.get(known).planning_phase is not PlanningPhase.NONE:
            return StorePlan(engine, known, self._functions.decode, created=False)
        return StoreHandle(engine, known, read_task_result, created=False)

    @reading
    def doctor(self) -> Diagnosis:
        """Check every invariant of the live store."""
        return engine_of(self).doctor()

    @overload
    def task(
        self, function: Callable[Concatenate[NoContext, ...], Coroutine[Any, Any, T]], /
    ) -> TaskFunction[..., Coroutine[Any, Any, T], T]: ...

    @overload
    def task(
        self, function: Callable[Concatenate[NoContext, ...], T], /
    ) -> TaskFunction[..., T, T]: ...

    @overload
    def task(
        self, function: Callable[Concatenate[C, P], Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, T], T]: ...

    @overload
    def task(self, function: Callable[Concatenate[C, P], T], /) -> TaskFunction[P, T, T]: ...

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, T], T]: ...

    @overload
    def task(self, function: Callable[P, T], /) -> TaskFunction[P, T, T]: ...

    @overload
    def task(
        self, /, *, name: str | None = None, **options: Unpack[TaskOptions]
    ) -> TaskDecorator: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        **options: Any,
    ) -> TaskFunction[..., Any, Any] | TaskDecorator:
        """Make a function a job that can be enqueued: `@hf.task` or `@hf.task(max_attempts=5)`.

        Its `name` is the function's unless given. Options: `agent`, `tags`, `priority`,
        `timeout`, `concurrency`, `max_attempts`, `max_lost`, `backoff`, `backoff_max`, `retry_on`
        and `never_retry_on`: the errors after which it is tried again, or not. The `concurrency`
        is a key, or a key and its limit. A key may name arguments, as
        "customer-{{ input.customer }}", or be a function of the arguments that it takes by name.
        """
        concurrency = options.pop("concurrency", None)
        check_call_concurrency(concurrency)
        chosen, own = read_step_options(options, self._retry), read_function_options(options)

        def add(decorated: Callable[..., Any]) -> TaskFunction[..., Any, Any]:
            known = clean_name("task", name or function_name(decorated))
            template = NewTask(title=known, step=known, **chosen)
            made = ProgramTask[..., Any, Any](self._program, decorated, template, own, concurrency)
            if known in self._functions.tasks:
                raise InvalidDefinition(known, ["is already a task of this Holdfast"])
            self._functions.tasks[known] = made.signature
            return made

        return TaskDecorator(add) if function is None else add(function)

    @operation
    def plan(
        self,
        title: str,
        *,
        agent: str = "default",
        parent: AnyId | None = None,
        key: str | None = None,
    ) -> Future[Plan]:
        """Begin a plan: add children to it, then finalize it, and they run in their order.

        Children without an agent of their own get the plan's. With a `parent` that is a plan it
        is a part of that one. A `key` makes it exist once.
        """
        wanted = NewTask(title=title, agent=agent, parent=id_of(parent), key=key, plan=True)
        engine = engine_of(self)
        return map_future(
            engine.tasks.create.submit(wanted),
            lambda made: StorePlan(engine, made.id, self._functions.decode, created=made.created),
        )

    def workflow(
        self,
        name: str,
        *,
        concurrency: FixedConcurrency = None,
        deadline: Duration | None = None,
    ) -> WorkflowBuilder:
        """Begin a workflow; add its steps with `@….step`.

        `concurrency` limits how many of its runs go on at once: a key for one at a time, or a key
        and its limit. The key may name inputs: "customer-{{ input.customer }}". A run that has not
        ended when its `deadline` comes, "2h" after its start, has failed.
        """
        clean_name("workflow", name)
        if name in self._functions.workflows:
            raise InvalidDefinition(name, ["is already a workflow of this Holdfast"])
        limit = read_concurrency(concurrency)
        made = WorkflowBuilder(
            self._program,
            name,
            concurrency=limit,
            deadline=read_seconds("deadline", deadline),
            retry=self._retry,
        )
        self._functions.workflows[name] = made
        return made

    @property
    def workflows(self) -> dict[str, WorkflowBuilder]:
        """The workflows of this program, by their names."""
        return dict(self._functions.workflows)

    def workflow_file(self, path: str | PathLike[str]) -> WorkflowFile:
        """Read a workflow from a YAML or JSON file; start it as one of Python functions is.

        `InvalidWorkflowFile` tells every mistake in it and where. Its steps are for workers that
        serve its agents; to start it, none of them need be there.
        """
        # Imported here, so that programs without workflow files do not wait for the reader.
        from holdfast.definition.workflow_file import read_workflow_file  # noqa: PLC0415

        return WorkflowFile(self._program, read_workflow_file(Path(path)))

    def on(
        self,
        *events: str,
        name: str | None = None,
        workflow: WorkflowBuilder | str | None = None,
        task: TaskFunction[..., Any, Any] | str | None = None,
        **options: Unpack[HookOptions],
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Have a function follow ends: `@hf.on("run.failed", workflow=checkout)`.

        The ends are `run.completed`, `run.failed`, `run.cancelled`, and of tasks outside of runs
        `task.done`, `task.failed`, `task.cancelled`. For each of them a worker calls the function
        with the event, after a `Context` if it takes one. The `name` and the options are those of
        `@hf.task`. The store knows of it when this Holdfast is first used.
        """
        watched = WatchedEnds(events=events, workflow=workflow, task=task)

        def add(decorated: Callable[P, T]) -> Callable[P, T]:
            known = clean_name("hook", name or function_name(decorated))
            made = define_hook(known, decorated, watched, options, self._retry)
            store = self._stores.current
            # The thread that opens the store holds the lock until all hooks are registered.
            with store.lock:
                if known in self._functions.hooks:
                    raise InvalidDefinition(known, ["is already a hook of this Holdfast"])
                self._functions.hooks[known] = made
                opened = store.engine
            if opened is not None:
                self._register(opened, made)
            return decorated

        return add

    def _register(self, opened: Engine, hook: HookFunction) -> None:
        try:
            with declare_wait("hf.on(…)", self.on):
                opened.hooks.register([hook.definition])
        except BaseException:
            # Forgotten, so that the caller can add the hook again.
            with self._stores.current.lock:
                self._functions.hooks.pop(hook.definition.name, None)
            raise

    def archive(
        self,
        directory: str | PathLike[str],
        *,
        name: str = "archive",
        workflow: WorkflowBuilder | str | None = None,
        **options: Unpack[HookOptions],
    ) -> None:
        """Have a file written for each run that ends: the run, its tasks, attempts and events.

        It is a hook like any other, with its options; a run that is retried gets another file
        for each generation.
        """
        archive = Archive(self._program, Path(directory).absolute())
        with declare_wait("hf.archive(…)", self.archive):
            self.on(*RUN_ENDS, name=name, workflow=workflow, **options)(archive.write)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The names of the functions that `@hf.task` made jobs in this program."""
        return tuple(self._functions.tasks)

    def worker(self, **options: Unpack[WorkerKeywords]) -> Worker:
        """A worker for this program's functions: `with hf.worker(): …` or `hf.worker().run()`.

        Options: `concurrency`, how many steps at once (32; unless said, it claims short ones
        ahead); `agents` it serves (["default"], or ["*"] for each) and `tags` it offers; its
        `name`, or the `service` it is of, which names it with its host and a number; `least_disk`,
        below which it claims nothing ("2GB"); `grace`, how long running steps may go on after a
        signal or Ctrl-C (as long as they take); `commands`, an `AgentCommand` for each agent whose
        tasks without a function are a command's to do.
        """
        known = [each.name for each in fields(WorkerOptions)]
        refuse_unknown("option", options, [*known, "commands"])
        given: dict[str, Any] = {**options}
        commands = given.pop("commands", {})
        executors = make_executors(engine_of(self), self._functions, commands)
        worker = StoreWorker(engine_of(self), executors, WorkerOptions(**given), executors.clean)
        executors.begin()
        store = self._stores.current
        with store.lock:
            store.workers.add(worker)
        return worker

    def close(self) -> None:
        """Stop the workers, write what was submitted, then close the store."""
        store = self._stores.current
        for worker in list(store.workers):
            worker.stop()
        with store.lock:
            opened, store.engine, store.closed = store.engine, None, True
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
