"""Task functions: functions that can be called as they are, or enqueued."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from holdfast.api.call_concurrency import CallConcurrency, read_call_concurrency
from holdfast.api.handle import Handle, Row, read_task_result
from holdfast.api.options import FUNCTION_OPTIONS, STEP_OPTIONS, read_step_options, refuse_unknown
from holdfast.api.signature import Signature
from holdfast.api.start import Schedulable
from holdfast.engine.core.sync_async import map_future, operation
from holdfast.engine.input.task_template import TaskTemplate, TemplatedTask
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.ids import id_of
from holdfast.model.frozen_record import make_record
from holdfast.model.run import CreateResult
from holdfast.model.task import NewTask
from holdfast.model.workflow.step import Concurrency
from holdfast.worker.attempt.function_options import NO_OPTIONS, FunctionOptions

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_ONE_TASK_OPTIONS = ("title", "scheduled_for", "needs", "parent", "position", "enqueue")

_CODE = ("__code__", "__defaults__", "__kwdefaults__")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class TaskFunction(Schedulable, Generic[P, R, T]):
    """Made by `@hf.task`: a call returns `R` as the function does, a worker's result is a `T`."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        function: Callable[P, R],
        template: NewTask,
        options: FunctionOptions = NO_OPTIONS,
        concurrency: object = None,
    ) -> None:
        self._engine = engine
        self._function = function
        self.signature = Signature(function, options=options)
        self._concurrency = concurrency
        limit = read_call_concurrency(concurrency, self.signature)
        self._call_concurrency = limit if isinstance(limit, CallConcurrency) else None
        of_all = None if isinstance(limit, CallConcurrency) else limit
        self._template = template = replace(template, concurrency=of_all)
        self._prepared = TaskTemplate(template)
        for name in self.signature.needed:
            reason = f"parameter {name!r}: needs(…) stands for a step's output, and this is no step"
            raise InvalidDefinition(template.title, [reason])
        _copy_identity(self, function)
        self.__name__ = self.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name of the function for workers, schedules and hooks."""
        return self._template.step or self._template.title

    def using(self, **options: Any) -> TaskFunction[P, R, T]:
        """The same function with other options, and with those of one task.

        These are its `title`, `scheduled_for`, `needs`, `parent` and `position`, and `enqueue`:
        with `enqueue=False` it is made and stays idle, as the children of a plan are.
        """
        for name in FUNCTION_OPTIONS:
            if name in options:
                raise InvalidInput(name, "belongs to the function: say it where @hf.task does")
        refuse_unknown("option", options, (*STEP_OPTIONS, *_ONE_TASK_OPTIONS))
        own = {name: _ids_of(options[name]) for name in options if name in _ONE_TASK_OPTIONS}
        rest = {name: options[name] for name in options if name not in _ONE_TASK_OPTIONS}
        concurrency = rest.pop("concurrency", self._concurrency)
        chosen = read_step_options(rest, self._template.retry)
        template = replace(self._template, **chosen, **own)
        own_options = self.signature.options
        return TaskFunction(self._engine, self._function, template, own_options, concurrency)

    def request(self, /, *args: Any, **kwargs: Any) -> NewTask:
        """The task of one call with these arguments."""
        payload = self.signature.bind_call(args, kwargs)
        limit = self._template.concurrency or self._limit_call(payload)
        told = {"payload": payload, "concurrency": limit}
        return make_record(NewTask, {**self._template.__dict__, **told})

    def _limit_call(self, payload: Mapping[str, Any]) -> Concurrency | None:
        """The concurrency that the arguments of one call decide; None if it is that of all."""
        own = self._call_concurrency
        return None if own is None else own.of_call(payload)

    def read_output(self, output: object) -> T:
        """The result of a call, from its JSON."""
        decoded: T = self.signature.decode("return", output)
        return decoded

    @operation
    def enqueue(
        self, /, *args: Any, key: str | None = None, connection: object = None, **kwargs: Any
    ) -> Future[Handle[T]]:
        """Put one call of the function in the queue; a `key` makes it exist once.

        With a `connection` it is part of the application's own transaction there.
        """
        payload = self.signature.bind_call(args, kwargs)
        engine = self._engine()
        since = engine.outcomes.looks if connection is None else None

        def handle(created: list[CreateResult]) -> Handle[T]:
            return self._handle(engine, created[0], since)

        task = TemplatedTask(payload, key, self._limit_call(payload))
        return engine.templated_creation.submit(self._prepared, task, handle, connection=connection)

    @operation
    def enqueue_many(
        self, calls: Sequence[Mapping[str, Any]], *, connection: object = None
    ) -> Future[list[Handle[T]]]:
        """Put many calls in the queue in one commit, all or none; each maps names to values."""
        bind, limit = self.signature.bind_call, self._limit_call
        payloads = (bind((), _check_mapping(call)) for call in calls)
        tasks = [TemplatedTask(payload, None, limit(payload)) for payload in payloads]
        engine = self._engine()
        since = engine.outcomes.looks if connection is None else None
        created = engine.templated_creation.submit_many(
            self._prepared, tasks, connection=connection
        )
        return map_future(
            created, lambda replies: [self._handle(engine, each, since) for each in replies]
        )

    def _handle(self, engine: Engine, created: CreateResult, since: int | None) -> Handle[T]:
        return Handle(engine, created.id, self._result, created=created.created, since=since)

    def _result(self, row: Row) -> T:
        return self.read_output(read_task_result(row))


def _copy_identity(made: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Have a task look like the function behind it: to `inspect`, to `help` and to frameworks."""
    functools.update_wrapper(made, function, updated=())
    whole: Any = function
    while isinstance(whole, functools.partial):
        whole = whole.func
    # By its code `inspect` tells a coroutine function from a plain one.
    functools.update_wrapper(made, whole, _CODE, updated=())
    vars(made)["__wrapped__"] = function


def _check_mapping(call: object) -> Mapping[str, Any]:
    if not isinstance(call, Mapping):
        raise InvalidInput("calls", f"{call!r} is no mapping of names of parameters to values")
    return call


def _ids_of(given: object) -> Any:  # noqa: ANN401 - what is no id is refused where it is read
    """The given value, with handles replaced by their ids."""
    if isinstance(given, list | tuple | set | frozenset):
        return tuple(id_of(each) for each in given)
    return id_of(given)


class TaskDecorator:
    """`@hf.task(…)`: the result of a coroutine function is what awaiting it gives."""

    def __init__(self, make: Callable[[Callable[..., Any]], TaskFunction[..., Any, Any]]) -> None:
        self._make = make

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, T], T]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> TaskFunction[P, T, T]: ...

    def __call__(self, function: Callable[..., Any], /) -> TaskFunction[..., Any, Any]:
        return self._make(function)
