"""Sync and async callers: each operation is called to wait, or its `aio` is awaited.

The other functions here make one future of others.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from types import CoroutineType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from holdfast.errors import InvalidInput, WrongThread
from holdfast.store.deadlocks import (
    declare_wait,
    has_open_transaction,
    is_inside_transaction,
    is_writer_thread,
)
from holdfast.store.group_commit.entries import follow_future
from holdfast.store.loop_connection import LoopConnection, is_asynchronous

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
S = TypeVar("S")


class DocumentedMethod:
    """A callable that `help` and signatures show as the method behind it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        # functools.update_wrapper would take as long as a whole call.
        self.__wrapped__ = method
        self.__name__ = method.__name__
        self.__doc__ = method.__doc__

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)

    def __repr__(self) -> str:
        bare = [
            each.replace(annotation=inspect.Parameter.empty)
            for each in self.__signature__.parameters.values()
        ]
        return f"{self.__wrapped__.__qualname__}{inspect.Signature(bare)}"


class BoundOperation(DocumentedMethod, Generic[P, T]):
    """A bound operation: `call(…)` blocks for the reply, `await call.aio(…)` does not block."""

    def __init__(
        self,
        submit: Callable[P, Future[T]],
        undo: Callable[[T], object] | None = None,
        joined_connection: object = None,
    ) -> None:
        super().__init__(submit)
        self.submit = submit
        self._undo = undo
        self._joined_connection = joined_connection

    @property
    def __signature__(self) -> inspect.Signature:
        taken = super().__signature__
        reply = str(taken.return_annotation).removeprefix("Future[").removesuffix("]")
        return taken.replace(return_annotation=reply)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        refuse_to_wait_in_writer(self.__name__)
        if not has_open_transaction():
            return self.submit(*args, **kwargs).result()
        with declare_wait(f"{self.__name__}(…)", self.submit):
            future = self.submit(*args, **kwargs)
        return future.result()

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return name_coroutine(self._aio(*args, **kwargs), self.__name__)

    async def _aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        import asyncio  # noqa: PLC0415 - slow to import, and only coroutines need it

        from holdfast.engine.core.event_loop_wakeups import wait_in_loop  # noqa: PLC0415 - the same

        joined = kwargs.get("connection") or self._joined_connection
        if joined is not None and is_asynchronous(joined):
            return await self._write_in_loop(joined, *args, **kwargs)
        if is_inside_transaction():
            with declare_wait(f"{self.__name__}.aio(…)", self.submit, blocking=False):
                future = self.submit(*args, **kwargs)
        else:
            future = self.submit(*args, **kwargs)
        try:
            await wait_in_loop(future)
        except asyncio.CancelledError:
            # The operation is being written or is written already, and nobody else gets its reply.
            if not future.cancel():
                future.add_done_callback(self._undo_late_reply)
            raise
        # From the future itself, because its result may be made only when it is asked for.
        return future.result()

    async def _write_in_loop(self, joined: object, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Write the operation through an asynchronous connection, in its event loop."""
        from holdfast.store.loop_statements import use_in_thread  # noqa: PLC0415 - imports asyncio

        def write(lent: LoopConnection[Any]) -> T:
            kwargs["connection"] = lent
            return self.submit(*args, **kwargs).result()

        return await use_in_thread(joined, write)

    def _undo_late_reply(self, future: Future[T]) -> None:
        if self._undo is not None and future.exception() is None:
            self._undo(future.result())


class OperationMethod(Generic[S, P, T]):
    """Descriptor of a method that returns a Future: a `BoundOperation` on each instance."""

    def __init__(self, method: Callable[Concatenate[S, P], Future[T]]) -> None:
        self._method = method
        self._undo: Callable[[S, T], object] | None = None
        self.__doc__ = method.__doc__

    def undone_by(self, undo: Callable[[S, T], object]) -> Callable[[S, T], object]:
        """Register a method that undoes a reply which came after its awaiter was cancelled."""
        self._undo = undo
        return undo

    @overload
    def __get__(self, instance: None, owner: type[S]) -> OperationMethod[S, P, T]: ...

    @overload
    def __get__(self, instance: S, owner: type[S]) -> BoundOperation[P, T]: ...

    def __get__(
        self, instance: S | None, owner: type[S]
    ) -> OperationMethod[S, P, T] | BoundOperation[P, T]:
        if instance is None:
            return self
        undo = None if self._undo is None else _bind(self._undo, instance)
        joined = getattr(instance, "joined_connection", None)
        call = BoundOperation(_bind(self._method, instance), undo, joined)
        # From now on the attribute is found on the instance, before this descriptor.
        instance.__dict__[self._method.__name__] = call
        return call


def name_coroutine(made: Coroutine[Any, Any, T], name: str) -> Coroutine[Any, Any, T]:
    """Name a coroutine, so that Python's warning that nobody awaits it says what to write."""
    named = cast("CoroutineType[Any, Any, T]", made)
    named.__qualname__ = f"….{name}.aio(…); write `await ….{name}.aio(…)`, or `….{name}(…)`:"
    return made


def operation(method: Callable[Concatenate[S, P], Future[T]]) -> OperationMethod[S, P, T]:
    return OperationMethod(method)


def refuse_to_wait_in_writer(name: str) -> None:
    if is_writer_thread():
        raise WrongThread(
            f"{name} was called by a callback in the thread that would have to carry it out, and "
            "would wait for ever; use its `submit`, which does not wait, or another thread"
        )


class BoundRead(DocumentedMethod, Generic[P, T]):
    """A bound read of the store: `read(…)` blocks, `await read.aio(…)` runs it in a thread."""

    def __init__(self, look: Callable[P, T]) -> None:
        super().__init__(look)
        self._look = look

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._look(*args, **kwargs)

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        import asyncio  # noqa: PLC0415 - slow to import, and only coroutines need it

        look = partial(self._look, *args, **kwargs)
        return name_coroutine(asyncio.to_thread(look), self.__name__)


class ReadMethod(Generic[S, P, T]):
    """Descriptor of a method that reads the store: a `BoundRead` on each instance."""

    def __init__(self, method: Callable[Concatenate[S, P], T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[S]) -> ReadMethod[S, P, T]: ...

    @overload
    def __get__(self, instance: S, owner: type[S]) -> BoundRead[P, T]: ...

    def __get__(self, instance: S | None, owner: type[S]) -> ReadMethod[S, P, T] | BoundRead[P, T]:
        return self if instance is None else BoundRead(_bind(self._method, instance))


def reading(method: Callable[Concatenate[S, P], T]) -> ReadMethod[S, P, T]:
    return ReadMethod(method)


def _bind(method: Callable[Concatenate[S, P], T], instance: S) -> Callable[P, T]:
    bound: Callable[P, T] = MethodType(method, instance)
    return bound


def map_future(future: Future[T], change: Callable[[T], U]) -> Future[U]:
    """The future of what `change` makes of the result of another future."""
    changed: Future[U] = follow_future(future)

    def finish(finished: Future[T]) -> None:
        settle_future(changed, lambda: change(finished.result()))

    future.add_done_callback(finish)
    return changed


def gather_futures(futures: Sequence[Future[Any]]) -> Future[list[Any]]:
    """The future of all results in order; the first error is its error."""
    if not futures:
        nothing: Future[list[Any]] = Future()
        nothing.set_result([])
        return nothing
    gathered: Future[list[Any]] = follow_future(futures[0])
    # Taking the next number is atomic, whichever threads the futures end in.
    ended = itertools.count(1)

    def finish(_: Future[Any]) -> None:
        if next(ended) == len(futures):
            settle_future(gathered, lambda: [future.result() for future in futures])

    for future in futures:
        future.add_done_callback(finish)
    return gathered


def submit_each(
    given: Sequence[T],
    make: Callable[[T], U],
    submit: Callable[[Sequence[U]], list[Future[Any]]],
) -> list[Future[Any]]:
    """Make an operation of each item and submit all; an invalid item fails only its own future."""
    made: dict[int, U] = {}
    replies: dict[int, Future[Any]] = {}
    for place, each in enumerate(given):
        try:
            made[place] = make(each)
        except InvalidInput as error:
            replies[place] = Future()
            replies[place].set_exception(error)
    replies |= zip(made, submit(list(made.values())), strict=True)
    return [replies[place] for place in range(len(given))]


def settle_future(future: Future[T], make: Callable[[], T]) -> None:
    """Settle a future with what `make` returns or raises, unless the future was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        made = make()
    except BaseException as error:  # noqa: BLE001 - it is the caller's to see
        future.set_exception(error)
    else:
        future.set_result(made)
