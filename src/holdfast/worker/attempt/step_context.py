"""Step contexts: what a running step can ask of its store, and report to it.

A function annotates its context as `Context`, a coroutine as `AsyncContext`: each operation of a
coroutine is awaited. A worker gives both the same object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from holdfast.engine.core.sync_async import BoundRead
from holdfast.model.result import TransitionResult
from holdfast.model.task import NamedLease, NewTask

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
A = TypeVar("A")
B = TypeVar("B")

# Seconds, "1h30m" or a timedelta.
Wait = float | str | timedelta


class TypedCallee(Protocol[P, T_co]):
    """A task function, by the arguments of its calls and by their result."""

    def request(self, *args: P.args, **kwargs: P.kwargs) -> NewTask: ...

    def read_output(self, output: object) -> T_co: ...


class CalleeOfOne(Protocol[A_contra, T_co]):
    """A task function that can be called with one argument."""

    def request(self, first: A_contra, /) -> NewTask: ...

    def read_output(self, output: object) -> T_co: ...


class CalleeOfTwo(Protocol[A_contra, B_contra, T_co]):
    """A task function that can be called with two arguments."""

    def request(self, first: A_contra, second: B_contra, /) -> NewTask: ...

    def read_output(self, output: object) -> T_co: ...


class StepContext(ABC):
    """One attempt, as its step sees it, whether that is a function or a coroutine."""

    @property
    @abstractmethod
    def task_id(self) -> str:
        """The id of the task that is being worked on."""

    @property
    @abstractmethod
    def run_id(self) -> str | None:
        """The id of its run, if it is part of one."""

    @property
    @abstractmethod
    def attempt(self) -> int:
        """The fence: it grows with every lease of this task."""

    @property
    @abstractmethod
    def token(self) -> str:
        """The secret of this attempt, which every write under its lease carries."""

    @property
    @abstractmethod
    def deadline(self) -> float:
        """Until when the lease lasts as far as is known, on a clock that counts suspend."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether this attempt is known to be over: cancelled, lost or out of time."""

    @property
    @abstractmethod
    def check(self) -> BoundRead[[], TransitionResult]:
        """Ask the store whether this attempt may still act."""

    @property
    @abstractmethod
    def guard(self) -> BoundRead[[], None]:
        """Call before a side effect; raises `AttemptEnded` when it must not happen."""

    @abstractmethod
    def progress(self, note: object) -> None:
        """Say how far the step is; others see it within a second."""

    @abstractmethod
    def log(self, text: object) -> None:
        """Add a line to the log of this attempt, which `holdfast logs` shows.

        That it cannot be written is told, and is no reason for a step to fail. What the step prints
        or logs by `logging` is in that log too.
        """

    @abstractmethod
    def effect_id(self, name: str) -> str:
        """The id of the effect under way, inside its function; else of the next of that name.

        It is the same in every attempt, another after a re-open.
        """


class Context(StepContext):
    """One attempt, as a function that is its step sees it."""

    @abstractmethod
    def artifact(self, name: str, content: str | bytes | Path) -> Path:
        """Keep a file under a name, and give its path; the content, or where to read it.

        The same again is the same, and another content under that name is refused.
        """

    @abstractmethod
    def lease(self, key: str, ttl: Wait) -> NamedLease | None:
        """Hold a name that nobody else holds, and give its lease; None when somebody does.

        It is given back when the function is left, also for a wait, or ends after its `ttl`. Pass
        its `fence` on to whatever is done under it.
        """

    @abstractmethod
    def effect(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do something once and remember what it gave, however often the step runs.

        Between doing and remembering it can be done again: pass `effect_id(name)` on as the
        idempotency key where that matters. A later attempt gets it as JSON gives it back.
        """

    @abstractmethod
    def sleep(self, duration: Wait, *, name: str | None = None) -> None:
        """Go on later; meanwhile no worker is held, and the step then runs again from its top.

        A `name` tells it from the sleeps of other branches of the function.
        """

    @overload
    def wait_for(
        self, signal: str, *, timeout: Wait | None = None, name: str | None = None
    ) -> Any: ...  # noqa: ANN401 - JSON
    @overload
    def wait_for(
        self,
        signal: str,
        *,
        type: type[T],
        timeout: Wait | None = None,
        name: str | None = None,
    ) -> T: ...
    @abstractmethod
    def wait_for(
        self,
        signal: str,
        *,
        type: Any = None,  # noqa: A002 - as dataclasses and pydantic call it
        timeout: Wait | None = None,
        name: str | None = None,
    ) -> Any:
        """Wait for `hf.signal(…)` and give its payload; holds no worker meanwhile.

        With a `type` the payload is checked and given as one: `wait_for("paid", type=Payment)`. A
        `name` tells it from where other branches of the function wait for the same signal.
        """

    @abstractmethod
    def ask(self, question: object, *, name: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """Ask a person and give the answer of `hf.answer(…)`; holds no worker meanwhile.

        A `name` tells it from what other branches of the function ask.
        """

    @overload
    def map(
        self, function: CalleeOfOne[A, T], items: Iterable[A], /, *, name: str | None = None
    ) -> list[T]: ...
    @overload
    def map(
        self,
        function: CalleeOfTwo[A, B, T],
        items: Iterable[A],
        others: Iterable[B],
        /,
        *,
        name: str | None = None,
    ) -> list[T]: ...
    @overload
    def map(
        self,
        function: TypedCallee[..., T],
        first: Iterable[Any],
        second: Iterable[Any],
        third: Iterable[Any],
        /,
        *iterables: Iterable[Any],
        name: str | None = None,
    ) -> list[T]: ...
    @abstractmethod
    def map(
        self, function: Any, /, *iterables: Iterable[Any], name: str | None = None
    ) -> list[Any]:
        """Call a task function once for each item, each a task of its own; gives the results.

        A `name` tells it from where other branches of the function map the same task.
        """

    @abstractmethod
    def call(self, function: TypedCallee[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a task function once, as a task of its own, and give its result.

        A title, `function.using(title=…)`, tells it from what other branches of the function call.
        """

    @abstractmethod
    def spawn(self, function: TypedCallee[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a child and give its id, without waiting for it; once, however often it runs.

        A title, `function.using(title=…)`, tells it from what other branches of the function
        spawn: a `name` here is an argument of the child.
        """


class AsyncContext(StepContext):
    """One attempt, as a coroutine that is its step sees it: its operations are awaited."""

    @abstractmethod
    def artifact(self, name: str, content: str | bytes | Path) -> Coroutine[Any, Any, Path]:
        """Keep a file under a name, as `Context.artifact` does."""

    @abstractmethod
    def lease(self, key: str, ttl: Wait) -> Coroutine[Any, Any, NamedLease | None]:
        """Hold a name that nobody else holds, as `Context.lease` does."""

    @overload
    def effect(
        self,
        name: str,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def effect(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @abstractmethod
    def effect(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Coroutine[Any, Any, Any]:
        """Do something once and remember it, as `Context.effect` does; a coroutine is awaited."""

    @abstractmethod
    def sleep(self, duration: Wait, *, name: str | None = None) -> Coroutine[Any, Any, None]:
        """Go on later, as `Context.sleep` does."""

    @overload
    def wait_for(
        self, signal: str, *, timeout: Wait | None = None, name: str | None = None
    ) -> Coroutine[Any, Any, Any]: ...
    @overload
    def wait_for(
        self,
        signal: str,
        *,
        type: type[T],
        timeout: Wait | None = None,
        name: str | None = None,
    ) -> Coroutine[Any, Any, T]: ...
    @abstractmethod
    def wait_for(
        self,
        signal: str,
        *,
        type: Any = None,  # noqa: A002 - as dataclasses and pydantic call it
        timeout: Wait | None = None,
        name: str | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Wait for `hf.signal(…)` and give its payload, as `Context.wait_for` does."""

    @abstractmethod
    def ask(self, question: object, *, name: str | None = None) -> Coroutine[Any, Any, Any]:
        """Ask a person and give the answer, as `Context.ask` does."""

    @overload
    def map(
        self, function: CalleeOfOne[A, T], items: Iterable[A], /, *, name: str | None = None
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        function: CalleeOfTwo[A, B, T],
        items: Iterable[A],
        others: Iterable[B],
        /,
        *,
        name: str | None = None,
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        function: TypedCallee[..., T],
        first: Iterable[Any],
        second: Iterable[Any],
        third: Iterable[Any],
        /,
        *iterables: Iterable[Any],
        name: str | None = None,
    ) -> Coroutine[Any, Any, list[T]]: ...
    @abstractmethod
    def map(
        self, function: Any, /, *iterables: Iterable[Any], name: str | None = None
    ) -> Coroutine[Any, Any, list[Any]]:
        """Call a task function once for each item, as `Context.map` does."""

    @abstractmethod
    def call(
        self, function: TypedCallee[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Call a task function once and give its result, as `Context.call` does."""

    @abstractmethod
    def spawn(
        self, function: TypedCallee[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, str]:
        """Enqueue a child and give its id, as `Context.spawn` does."""
