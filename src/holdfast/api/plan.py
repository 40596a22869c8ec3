"""Plans: handles on tasks whose children do the work, one after another or as a graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast, overload

from holdfast.api.handle import Handle, Row, make_failure, read_task_result
from holdfast.api.task import TaskFunction
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.ids import AnyId
from holdfast.model.result import TransitionResult
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import Task

P = ParamSpec("P")
T = TypeVar("T")
# Decodes the output of a task function, by its name.
Decode = Callable[[str | None, Any], Any]


class AddChild(Protocol):
    """How a call is added to a plan: `add(function, …)`, `await add.aio(…)`, `add.submit(…)`."""

    @overload
    def __call__(
        self, function: TaskFunction[P, Any, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Handle[T]: ...
    @overload
    def __call__(
        self, function: TaskFunction[..., Any, T], /, *args: Any, key: str | None, **kwargs: Any
    ) -> Handle[T]: ...

    @overload
    def aio(
        self, function: TaskFunction[P, Any, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, Handle[T]]: ...
    @overload
    def aio(
        self, function: TaskFunction[..., Any, T], /, *args: Any, key: str | None, **kwargs: Any
    ) -> Coroutine[Any, Any, Handle[T]]: ...

    @overload
    def submit(
        self, function: TaskFunction[P, Any, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[Handle[T]]: ...
    @overload
    def submit(
        self, function: TaskFunction[..., Any, T], /, *args: Any, key: str | None, **kwargs: Any
    ) -> Future[Handle[T]]: ...


class AddChildMethod(Protocol):
    """The operation `add` of a plan."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Plan, owner: type) -> AddChild: ...


def add_operation(method: Callable[..., Future[Any]]) -> AddChildMethod:
    return cast("AddChildMethod", operation(method))


class Plan(Handle[list[Any]]):
    """Made by `hf.plan(title)`: add children, put them in order, finalize it, wait for its result.

    Its result is the list of what its children gave, in their order. `hf.tasks` edits, cancels,
    retries, re-opens and resets it, and each of its children.
    """

    _shown = "Plan"
    _decode: Decode

    @add_operation
    def add(
        self,
        function: TaskFunction[..., Any, Any],
        /,
        *args: Any,
        key: str | None = None,
        **kwargs: Any,
    ) -> Future[Handle[Any]]:
        """Add one call of a function as the last child; it starts when the plan is finalized.

        `implement.using(title="Login form")` gives it a title of its own, and `using(key=…)` a key
        in the form whose arguments type checkers know.
        """
        if not isinstance(function, TaskFunction):
            reason = f"{function!r} is no task function; put @hf.task above it"
            raise InvalidInput("function", reason)
        child = function.using(parent=self, enqueue=False)
        return child.enqueue.submit(*args, key=key, **kwargs)

    @operation
    def reorder(self, order: Sequence[AnyId]) -> Future[TransitionResult]:
        """Put the children in this order, which names each of them once."""
        return self._engine.tasks.reorder_plan.submit(self.id, order)

    @operation
    def finalize(
        self, graph: Mapping[Any, Sequence[AnyId]] | None = None
    ) -> Future[TransitionResult]:
        """Queue the children: each after the one before it, or by a graph of what each needs.

        `plan.finalize({join: [left, right]})` lets `left` and `right` start at once, and
        `plan.finalize({})` all of them.
        """
        return self._engine.tasks.finalize_plan.submit(self.id, graph=graph)

    @reading
    def children(self) -> list[Task]:
        """The children as they stand now, in the order of the plan."""
        return self._engine.tasks.children(self.id)

    def _result(self, row: Row) -> list[Any]:
        if row["status"] != Status.DONE:
            raise make_failure(row, self._first_failed())
        return self._read_children(self.id, read_task_result(row))

    def _first_failed(self) -> str | None:
        for child in self.children():
            if child.status in {Status.FAILED, Status.CANCELLED}:
                return child.title
        return None

    def _read_children(self, plan_id: str, outputs: list[Any]) -> list[Any]:
        """The results of the children of a plan; plain JSON for a child that is deleted by now."""
        children = self._engine.tasks.children(plan_id)
        results = list(outputs)
        for place, child in _match_children(children, outputs).items():
            results[place] = (
                self._decode(child.step, child.output)
                if child.planning_phase is PlanningPhase.NONE
                else self._read_children(child.id, child.output)
            )
        return results


class StorePlan(Plan):
    """A plan of an engine."""

    def __init__(self, engine: Engine, identifier: str, decode: Decode, *, created: bool) -> None:
        self._set(engine, identifier, self._result, created=created)
        self._decode = decode


def _match_children(children: list[Task], outputs: list[Any]) -> dict[int, Task]:
    """The child behind each output, as far as that is certain after other children were deleted.

    Outputs and children have the same order: a match is certain where the search from the front
    and the search from the back agree.
    """
    given = [json.dumps(output) for output in outputs]
    first = _match_in_order(children, list(enumerate(given)))
    last = _match_in_order(children[::-1], list(enumerate(given))[::-1])
    return {place: child for place, child in first.items() if last.get(place) is child}


def _match_in_order(children: list[Task], given: list[tuple[int, str]]) -> dict[int, Task]:
    places, found = iter(given), {}
    for child in children:
        output = json.dumps(child.output)
        place = next((place for place, each in places if each == output), None)
        if place is not None:
            found[place] = child
    return found
