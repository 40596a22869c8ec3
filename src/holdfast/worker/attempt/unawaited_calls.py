"""Unawaited calls: operations that a coroutine function has called and that have not begun."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import CoroutineType, MethodType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, cast, overload

from holdfast.engine.core.sync_async import BoundRead
from holdfast.worker.attempt.durable import InvalidCall

LONGEST_SHOWN = 60
# Stands for the first argument of a call without arguments.
NOTHING = object()
Operation = Coroutine[Any, Any, Any]

P = ParamSpec("P")
T = TypeVar("T")


class NotAwaited(InvalidCall):
    """The function has called an operation without awaiting it, so that nothing was done."""

    def __init__(self, call: str) -> None:
        super().__init__(call, f"nobody awaits it, so that nothing was done: write await {call}")


class UnawaitedCalls:
    """The operations of one function that are called and not begun, in the order of their calls."""

    def __init__(self) -> None:
        self._calls: dict[object, tuple[str, object, Operation]] = {}

    def call(
        self, method: str, given: object, begin: Callable[[Callable[[], None]], Operation]
    ) -> Operation:
        """The coroutine that `begin` makes; it is to call what it is given once it is awaited."""
        key = object()
        made = begin(lambda: self._forget(key))
        self._calls[key] = (method, given, made)
        return made

    def _forget(self, key: object) -> None:
        self._calls.pop(key, None)

    def forget_all(self) -> None:
        self._calls.clear()

    async def close(self) -> str | None:
        """Close the operations that nobody awaits; gives the first of them as it was called."""
        if not self._calls:
            return None
        # One pass of the loop: a task that was just made of an operation begins with it.
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        left = [each for each in self._calls.values() if _has_not_begun(each[2])]
        self._calls.clear()
        for _, _, made in left:
            made.close()
        return _describe_call(*left[0][:2]) if left else None


class NotesCalls(Protocol):
    """The object of a read whose calls are noted."""

    @property
    def unawaited(self) -> UnawaitedCalls: ...


class NotedRead(BoundRead[P, T]):
    """A read whose `aio` counts as not awaited until it begins."""

    def __init__(self, look: Callable[P, T], unawaited: UnawaitedCalls) -> None:
        super().__init__(look)
        self._unawaited = unawaited

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        look = partial(super().aio, *args, **kwargs)
        return self._unawaited.call(f"{self.__name__}.aio", NOTHING, partial(_begin_read, look))


async def _begin_read(
    look: Callable[[], Coroutine[Any, Any, T]], on_begin: Callable[[], None]
) -> T:
    on_begin()
    return await look()


class NotedReadMethod(Generic[T]):
    """Descriptor of a method that reads the store: a `NotedRead` on each instance."""

    def __init__(self, method: Callable[[Any], T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[NotesCalls]) -> Self: ...

    @overload
    def __get__(self, instance: NotesCalls, owner: type[NotesCalls]) -> BoundRead[[], T]: ...

    def __get__(
        self, instance: NotesCalls | None, owner: type[NotesCalls]
    ) -> Self | BoundRead[[], T]:
        if instance is None:
            return self
        look: Callable[[], T] = MethodType(self._method, instance)
        return NotedRead(look, instance.unawaited)


def noted_read(method: Callable[[Any], T]) -> NotedReadMethod[T]:
    return NotedReadMethod(method)


def _has_not_begun(made: Operation) -> bool:
    state = inspect.getcoroutinestate(cast("CoroutineType[Any, Any, Any]", made))
    return state == inspect.CORO_CREATED


def _describe_call(method: str, given: object) -> str:
    """A call as it stands in the code, as far as that is known."""
    if given is NOTHING:
        return f"ctx.{method}()"
    shown = str(getattr(given, "__name__", None) or repr(given))
    more = ", …" if method in _TAKES_MORE else ""
    return f"ctx.{method}({shown[:LONGEST_SHOWN]}{more})"


_TAKES_MORE = frozenset({"artifact", "effect", "lease", "map", "spawn"})
