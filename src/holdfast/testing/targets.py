"""Targets: the steps and task functions that a test means, by the function or by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.api.task import TaskFunction
from holdfast.errors import InvalidInput


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A step or task: the `function` that carries it out, or any of that name."""

    name: str
    function: Callable[..., Any] | None = None

    def means(self, function: Callable[..., Any] | None, *names: str | None) -> bool:
        """Whether something is meant, which has these names, and which a function carries out."""
        return function is self.function if self.function is not None else self.name in names

    def __str__(self) -> str:
        return self.name


Named = Callable[..., Any] | TaskFunction[..., Any, Any] | Target | str


def read_target(field: str, named: object) -> Target:
    if isinstance(named, Target):
        return named
    if isinstance(named, str):
        return Target(name=named)
    if isinstance(named, TaskFunction):
        return Target(name=named.name, function=named.signature.function)
    if callable(named) and (name := getattr(named, "__name__", None)) is not None:
        return Target(name=name, function=named)
    raise InvalidInput(field, f"{named!r} is no step; give its function, or its name as a text")
