"""Task functions: functions that can be called as they are, or enqueued."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from holdfast.api.call_concurrency import CallConcurrency, read_call_concurrency
from holdfast.api.handle import Handle, Row, StoreHandle, read_task_result
from holdfast.api.option_types import CallOptions
from holdfast.api.options import FUNCTION_OPTIONS, STEP_OPTIONS, read_step_options, refuse_unknown
from holdfast.api.program_engine import ProgramEngine
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
from holdfast.worker.attempt.step_context import StepContext

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_ONE_TASK_OPTIONS = ("title", "scheduled_for", "needs", "parent", "position", "enqueue", "labels")
_ONE_CALL_OPTIONS = ("key", "connection")

_CODE = ("__code__", "__defaults__", "__kwdefaults__")

P = ParamSpec("P")
# What a worker fills: the parameter of a function that comes first, where it is a context.
C = TypeVar("C", bound=StepContext)
R = TypeVar("R")
T = TypeVar("T")


class NoContext:
    """Stands for what is no context: a first parameter that accepts it accepts anything.

    Type checkers do not check the arguments of such functions, because they cannot tell whether
    the first one is the context.
    """


class Enqueue(Protocol[P, T]):
    """How a task function is enqueued: `enqueue(…)`, `await enqueue.aio(…)`, `enqueue.submit(…)`.

    Type checkers know the arguments of a call without options. Where a `key` or a `connection` is
    among them, `task.using(key=…).enqueue(…)` is the form whose arguments they check.
    """

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Handle[T]: ...
    @overload
    def __call__(
        self, *args: Any, key: str | None, connection: object = None, **kwargs: Any
    ) -> Handle[T]: ...
    @overload
    def __call__(
        self, *args: Any, connection: object, key: str | None = None, **kwargs: Any
    ) -> Handle[T]: ...

    @overload
    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Handle[T]]: ...
    @overload
    def aio(
        self, *args: Any, key: str | None, connection: object = None, **kwargs: Any
    ) -> Coroutine[Any, Any, Handle[T]]: ...
    @overload
    def aio(
        self, *args: Any, connection: object, key: str | None = None, **kwargs: Any
    ) -> Coroutine[Any, Any, Handle[T]]: ...

    @overload
    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Future[Handle[T]]: ...
    @overload
    def submit(
        self, *args: Any, key: str | None, connection: object = None, **kwargs: Any
    ) -> Future[Handle[T]]: ...
    @overload
    def submit(
        self, *args: Any, connection: object, key: str | None = None, **kwargs: Any
    ) -> Future[Handle[T]]: ...


class EnqueueMethod(Protocol):
    """The operation `enqueue` of a task function, with the arguments of that function."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: TaskFunction[P, R, T], owner: type) -> Enqueue[P, T]: ...


def enqueue_operation(method: Callable[..., Future[Any]]) -> EnqueueMethod:
    # `operation` cannot say that an option stands beside the arguments of a function.
    return cast("EnqueueMethod", operation(method))


class TaskFunction(Schedulable, Generic[P, R, T]):
    """Made by `@hf.task`: a call returns `R` as the function does, a worker's result is a `T`.

    `P` are the parameters without the context, which a worker fills.
    """

    _key: str | None = None
    # The transaction of the application that all calls join.
    joined_connection: object = None

    __name__: str
    signature: Signature
    _function: Callable[..., R]
    _template: NewTask
    _prepared: TaskTemplate
    _concurrency: object
    _call_concurrency: CallConcurrency | None

    @abstractmethod
    def __init__(self) -> None:
        """Only `@hf.task` makes task functions."""

    @overload
    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, ctx: StepContext, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        return self._function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name of the function for workers, schedules and hooks."""
        return self._template.step or self._template.title

    def using(self, **options: Unpack[CallOptions]) -> TaskFunction[P, R, T]:
        """The same function with other options, and with those of one task.

        These are its `title`, `scheduled_for`, `needs`, `parent`, `position` and `labels`, and
        `enqueue`: with `enqueue=False` it is made and stays idle, as the children of a plan are. A
        `key` and a `connection` are those of `enqueue`.
        """
        return self._use(options)

    @abstractmethod
    def _use(self, options: Mapping[str, Any]) -> TaskFunction[P, R, T]:
        """The same function with other options."""

    def request(self, *args: P.args, **kwargs: P.kwargs) -> NewTask:
        """The task of one call with these arguments."""
        payload = self.signature.bind_call(args, kwargs)
        limit = self._template.concurrency or self._limit_call(payload)
        told = {"payload": payload, "concurrency": limit, "key": self._key}
        return make_record(NewTask, {**self._template.__dict__, **told})

    def _limit_call(self, payload: Mapping[str, Any]) -> Concurrency | None:
        """The concurrency that the arguments of one call decide; None if it is that of all."""
        own = self._call_concurrency
        return None if own is None else own.of_call(payload)

    def read_output(self, output: object) -> T:
        """The result of a call, from its JSON."""
        decoded: T = self.signature.decode("return", output)
        return decoded

    def _request_start(self, given: Mapping[str, Any]) -> NewTask:
        request: Callable[..., NewTask] = self.request
        return request(**given)

    @enqueue_operation
    def enqueue(
        self, /, *args: Any, key: str | None = None, connection: object = None, **kwargs: Any
    ) -> Future[Handle[T]]:
        """Put one call of the function in the queue; a `key` makes it exist once.

        With a `connection` it is part of the application's own transaction there. Both can also be
        said by `using`, and then type checkers know the arguments.
        """
        payload = self.signature.bind_call(args, kwargs)
        key = self._key if key is None else key
        connection = self.joined_connection if connection is None else connection
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
        if self._key is not None:
            reason = "is of one call; give each call a key of its own by enqueue(…, key=…)"
            raise InvalidInput("key", reason)
        connection = self.joined_connection if connection is None else connection
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
        return StoreHandle(engine, created.id, self._result, created=created.created, since=since)

    def _result(self, row: Row) -> T:
        return self.read_output(read_task_result(row))


class ProgramTask(TaskFunction[P, R, T]):
    """A task function of a program, with the engine of that program."""

    def __init__(
        self,
        engine: ProgramEngine,
        function: Callable[..., R],
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

    def _use(self, options: Mapping[str, Any]) -> TaskFunction[P, R, T]:
        for name in FUNCTION_OPTIONS:
            if name in options:
                raise InvalidInput(name, "belongs to the function: say it where @hf.task does")
        known = (*STEP_OPTIONS, *_ONE_TASK_OPTIONS, *_ONE_CALL_OPTIONS)
        refuse_unknown("option", options, known)
        own = {name: _ids_of(options[name]) for name in options if name in _ONE_TASK_OPTIONS}
        rest = {name: options[name] for name in options if name in STEP_OPTIONS}
        concurrency = rest.pop("concurrency", self._concurrency)
        chosen = read_step_options(rest, self._template.retry)
        template = replace(self._template, **chosen, **own)
        own_options = self.signature.options
        changed = ProgramTask[P, R, T](
            self._engine, self._function, template, own_options, concurrency
        )
        changed._key = options.get("key", self._key)
        changed.joined_connection = options.get("connection", self.joined_connection)
        return changed


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
        self, function: Callable[Concatenate[NoContext, ...], Coroutine[Any, Any, T]], /
    ) -> TaskFunction[..., Coroutine[Any, Any, T], T]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[NoContext, ...], T], /
    ) -> TaskFunction[..., T, T]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[C, P], Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, T], T]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[C, P], T], /) -> TaskFunction[P, T, T]: ...

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, Coroutine[Any, Any, T], T]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> TaskFunction[P, T, T]: ...

    def __call__(self, function: Callable[..., Any], /) -> TaskFunction[..., Any, Any]:
        return self._make(function)
