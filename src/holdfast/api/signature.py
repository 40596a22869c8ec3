"""Signatures: the parameters and the result of a function, and their form in JSON."""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.worker.attempt.function_options import NO_OPTIONS, FunctionOptions
from holdfast.worker.attempt.step_context import AsyncContext, Context, StepContext

_JSON = (dict, list, tuple, str, int, float, type(None))
_CONTEXTS = (AsyncContext, Context, StepContext)
RESERVED = frozenset({"key", "connection"})


@dataclass(frozen=True, slots=True)
class OutputReference:
    """Stands for another step's output, or for a part of it."""

    step: Any
    path: str | None = None


def needs(step: Any, path: str | None = None) -> Any:  # noqa: ANN401 - it stands where any type of value is expected
    """Stand for the output of another step: as a parameter's default, in `over` or in `when`.

    A `path` chooses a part of it: `needs(plan, "stories")`, `needs(plan, "owner.name")`. Of a
    loop, the output is the list of what its items gave.
    """
    return OutputReference(step, path)


class Signature:
    """The parameters of a function by their source: the context, the input, other steps.

    The engine fills the parameters named in `filled`. The function brings its own `options` along.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        filled: Collection[str] = (),
        options: FunctionOptions = NO_OPTIONS,
    ) -> None:
        self.function = function
        self.options = options
        self._filled = filled
        self.name = getattr(function, "__name__", repr(function))
        self._parameters = parameters = _parameters(self.name, function)
        mistakes = [
            f"parameter {name!r}: {reason}"
            for name, parameter in parameters.items()
            if (reason := _find_unusable(name, parameter, filled))
        ]
        if options.isolated and (reason := _find_unimportable(function)):
            mistakes.append(f"isolation: {reason}")
        if mistakes:
            raise InvalidDefinition(self.name, mistakes)

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        found = typing.get_type_hints(_find_annotated(self.function), include_extras=True)
        return {name: found[name] for name in (*self._parameters, "return") if name in found}

    @property
    def asynchronous(self) -> bool:
        """Whether a call of it is to be awaited."""
        function = self.function
        while isinstance(function, partial):
            function = function.func
        return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))

    @cached_property
    def context(self) -> str | None:
        """The parameter that takes the context, by its annotation or by the name `ctx`."""
        for name in self._parameters:
            if name == "ctx" or self.hints.get(name) in _CONTEXTS:
                return name
        return None

    @property
    def parameter_names(self) -> list[str]:
        """The names of all parameters but `ctx`; no annotation is looked at yet."""
        return [name for name in self._parameters if name != "ctx"]

    @cached_property
    def filled(self) -> dict[str, inspect.Parameter]:
        """The parameters that the engine fills, by their names."""
        return {name: each for name, each in self._parameters.items() if name in self._filled}

    @cached_property
    def needed(self) -> dict[str, OutputReference]:
        """The parameters that other steps fill."""
        return {
            name: parameter.default
            for name, parameter in self._parameters.items()
            if isinstance(parameter.default, OutputReference)
        }

    @cached_property
    def inputs(self) -> dict[str, inspect.Parameter]:
        """The parameters that the caller fills."""
        skipped = {self.context, *self.needed, *self.filled}
        return {name: each for name, each in self._parameters.items() if name not in skipped}

    @cached_property
    def _caller_signature(self) -> inspect.Signature:
        """The signature with the parameters that a caller passes alone."""
        return inspect.Signature(list(self.inputs.values()))

    @cached_property
    def mistakes(self) -> list[str]:
        """The annotations whose values have no form in JSON."""
        try:
            named = [name for name in self.hints if name != self.context]
        except NameError as error:
            reason = f"an annotation cannot be found ({error}); define its type at module level"
            return [f"{self.name}: {reason}"]
        found = []
        if not self.asynchronous and self.hints.get(str(self.context)) is AsyncContext:
            reason = "only a coroutine awaits; annotate it Context, or write `async def`"
            found.append(f"{self.name}: {self.context}: {reason}")
        for name in named:
            try:
                self._adapter(name)
            except (PydanticUserError, NameError):
                shown = getattr(self.hints[name], "__name__", self.hints[name])
                reason = f"{shown} has no form in JSON; use a type that pydantic knows"
                found.append(f"{self.name}: {name}: {reason}")
        return found

    def check(self) -> None:
        if self.mistakes:
            raise InvalidDefinition(self.name, self.mistakes)

    def bind_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON form of a call's arguments, checked against the annotations."""
        self.check()
        bound = self._bind(args, kwargs)
        return {name: self.encode(name, value) for name, value in bound.items()}

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call, in the order of the parameters."""
        inputs, (places, required) = self.inputs, self._shape
        if not args and not kwargs and not required:
            return {}
        named = {**dict(zip(places, args, strict=False)), **kwargs}
        whole = len(named) == len(args) + len(kwargs)
        if whole and required <= named.keys() <= inputs.keys():
            return {name: named[name] for name in inputs if name in named}
        try:
            return self._caller_signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidInput(self.name, str(error)) from error

    @cached_property
    def _shape(self) -> tuple[list[str], frozenset[str]]:
        """The inputs that can be passed by position, and the names of those that are required."""
        inputs = self.inputs.items()
        places = [name for name, each in inputs if each.kind is each.POSITIONAL_OR_KEYWORD]
        return places, frozenset(name for name, each in inputs if each.default is each.empty)

    def encode(self, name: str, value: object) -> object:
        try:
            return self._encode(name, value)
        except InvalidInput as error:
            if not inspect.iscoroutine(value):
                raise
            value.close()
            reason = f"{self.name!r} gave a coroutine, which nobody awaits"
            advice = "make it `async def`, and what wraps it too, with an `await` for what it calls"
            raise InvalidInput(name, f"{reason}; {advice}") from error

    def _encode(self, name: str, value: object) -> object:
        if name not in self.hints:
            if not isinstance(value, _JSON):
                raise InvalidInput(name, self._describe_unannotated(name, value))
            return value
        adapter = self._adapter(name)
        try:
            return adapter.dump_python(adapter.validate_python(value), mode="json")
        except ValidationError as error:
            raise InvalidInput(name, self._describe_mismatch(name, error)) from error
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            raise InvalidInput(name, f"is not JSON: {error}") from error

    def decode(self, name: str, value: object) -> Any:  # noqa: ANN401 - what the annotation says
        if self.hints.get(name, Any) is Any:
            return value
        try:
            # From JSON, as `encode` made it: a strict type accepts a date from JSON alone.
            return self._adapter(name).validate_json(json.dumps(value))
        except ValidationError as error:
            raise InvalidInput(name, self._describe_mismatch(name, error)) from error

    def accepts(self, name: str, value: object) -> bool:
        """Whether a value fits what is annotated."""
        try:
            self.decode(name, value)
        except InvalidInput:
            return False
        return True

    def _describe_mismatch(self, name: str, error: ValidationError) -> str:
        return (
            f"{_describe_first(error)}; {self.name!r} {'gives' if name == 'return' else 'takes'} it"
        )

    def _describe_unannotated(self, name: str, value: object) -> str:
        kind = type(value).__name__
        what = "its return type" if name == "return" else f"its parameter {name!r}"
        return f"a {kind} is not JSON by itself; annotate {self.name!r}: {what} is {kind}"

    def _adapter(self, name: str) -> TypeAdapter[Any]:
        if name not in self._adapters:
            self._adapters[name] = TypeAdapter(self.hints[name])
        return self._adapters[name]

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {}


def _parameters(name: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function, without those that a partial has filled by keyword."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise InvalidDefinition(name, [f"its parameters cannot be told: {error}"]) from error
    given = function.keywords if isinstance(function, partial) else {}
    return {each: parameters[each] for each in parameters if each not in given}


def _find_annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The object with the annotations: a partial's function, or the `__call__` of an object."""
    if isinstance(function, partial) and not hasattr(function, "__wrapped__"):
        return _find_annotated(function.func)
    known = inspect.isroutine(function) or isinstance(function, type)
    called: Callable[..., Any] = type(function).__call__
    return function if known or hasattr(function, "__wrapped__") else called


def _find_unimportable(function: Callable[..., Any]) -> str | None:
    """Say why another process could not import a function by its module and name, if so."""
    advice = "a process of its own imports it by its module and name"
    if not inspect.isfunction(function):
        return f"it is a {type(function).__name__}, and {advice}: put it into a function"
    if "<" in function.__qualname__:
        return f"it is defined inside another function, or has no name, and {advice}"
    main = sys.modules["__main__"]
    if function.__module__ == "__main__" and not hasattr(main, "__file__"):
        return f"it was typed in, and {advice}: write it into a file"
    return None


def _find_unusable(name: str, parameter: inspect.Parameter, filled: Collection[str]) -> str | None:
    if name in RESERVED:
        return f"the name is Holdfast's own; {', '.join(sorted(RESERVED))} are options of the call"
    if name in filled and isinstance(parameter.default, OutputReference):
        return f"the name is Holdfast's own; {', '.join(filled)} are filled by it in a step"
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        return "a step takes named parameters, not * or **"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return "arguments are passed by name, so it cannot be positional-only"
    return None


def _describe_first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{place}: {found['msg']}" if place else found["msg"]


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function; refuses a function without one."""
    own = str(getattr(function, "__name__", "<nameless>"))
    if own.startswith("<"):
        raise InvalidInput("task", f"{function!r} has no name of its own; give it one with name=")
    return own
