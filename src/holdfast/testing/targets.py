"""Targets: the steps and task functions that a test means, by the function or by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.api.task import TaskFunction
from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment, Task

Named = Callable[..., Any] | TaskFunction[..., Any, Any] | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A step or task: the `function` that carries it out, or any of that name."""

    name: str
    function: Callable[..., Any] | None = None

    def matches(self, assignment: Assignment, function: Callable[..., Any] | None) -> bool:
        """Whether a task, which a function carries out in its program, is meant."""
        if self.function is not None:
            return function is self.function
        return self.name in {assignment.step, assignment.name}

    def matches_task(self, task: Task, function: Callable[..., Any] | None) -> bool:
        """Whether a task is meant; a group, such as a loop, only by its name."""
        if self.function is not None:
            return function is self.function
        return self.name in {task.step, task.title}

    def __str__(self) -> str:
        return self.name


def read_target(field: str, named: object) -> Target:
    if isinstance(named, str):
        return Target(name=named)
    if isinstance(named, TaskFunction):
        return Target(name=named.name, function=named.signature.function)
    if callable(named) and (name := getattr(named, "__name__", None)) is not None:
        return Target(name=name, function=named)
    raise InvalidInput(field, f"{named!r} is no step; give its function, or its name as a text")
