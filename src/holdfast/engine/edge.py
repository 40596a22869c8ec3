"""One operation for every caller: call it to wait, or await its `aio` in a coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
S = TypeVar("S")


class Call(Generic[P, T]):
    """A bound operation: `call(…)` blocks for the reply, `await call.aio(…)` does not block."""

    def __init__(self, submit: Callable[P, Future[T]]) -> None:
        self.submit = submit

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.submit(*args, **kwargs).result()

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self.submit(*args, **kwargs))


class Operation(Generic[S, P, T]):
    """Turns a method that gives a Future into a `Call` on the instance it is reached through."""

    def __init__(self, method: Callable[Concatenate[S, P], Future[T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[S]) -> Operation[S, P, T]: ...

    @overload
    def __get__(self, instance: S, owner: type[S]) -> Call[P, T]: ...

    def __get__(self, instance: S | None, owner: type[S]) -> Operation[S, P, T] | Call[P, T]:
        if instance is None:
            return self
        method = self._method

        def submit(*args: P.args, **kwargs: P.kwargs) -> Future[T]:
            return method(instance, *args, **kwargs)

        return Call(submit)


def operation(method: Callable[Concatenate[S, P], Future[T]]) -> Operation[S, P, T]:
    return Operation(method)


def then(future: Future[T], change: Callable[[T], U]) -> Future[U]:
    """The future of what `change` makes of another future's result."""
    changed: Future[U] = Future()

    def finish(finished: Future[T]) -> None:
        try:
            changed.set_result(change(finished.result()))
        except BaseException as error:  # noqa: BLE001 - it is the caller's to see
            changed.set_exception(error)

    future.add_done_callback(finish)
    return changed


def gather(futures: Sequence[Future[Any]]) -> Future[list[Any]]:
    """The future of all results in order; the first error is its error."""
    gathered: Future[list[Any]] = Future()
    left = len(futures)
    if not left:
        gathered.set_result([])
        return gathered
    counted = _Countdown(left)

    def finish(_: Future[Any]) -> None:
        if counted.last():
            try:
                gathered.set_result([future.result() for future in futures])
            except BaseException as error:  # noqa: BLE001 - it is the caller's to see
                gathered.set_exception(error)

    for future in futures:
        future.add_done_callback(finish)
    return gathered


class _Countdown:
    def __init__(self, count: int) -> None:
        # list.pop is atomic; a plain counter is not.
        self._left = [None] * count

    def last(self) -> bool:
        self._left.pop()
        return not self._left
