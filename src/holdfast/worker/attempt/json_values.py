"""JSON values: what effects gave and what signals brought, kept as JSON and given back as types."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import lru_cache, partial
from typing import Any, get_args, get_origin

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from holdfast.errors import InvalidInput

_PLAIN_TYPES = frozenset({type(None), bool, int, float, str})
# Annotations whose values are the JSON itself.
_JSON_ANNOTATIONS = (Any, None, object, dict, list, *_PLAIN_TYPES)
ENCODABLE_VALUES = "text, numbers, lists, dicts, a dataclass or a pydantic model"


class InvalidEffect(InvalidInput):
    """The result of an effect cannot be remembered; as the effect was done, it is not repeated."""

    def __init__(self, name: str, reason: str, give: str = ENCODABLE_VALUES) -> None:
        advice = f"it was done, so it is not tried again: have it give {give}"
        super().__init__(f"effect {name!r}", f"{reason}; {advice}")


class InvalidSignal(InvalidInput):
    """The payload of a signal is not of the type that its step waits for, in every attempt."""

    def __init__(self, signal: str, reason: str, task_id: str) -> None:
        advice = f"send another, and have it begin anew: `holdfast retry --again {task_id}`"
        super().__init__(
            f"signal {signal!r}", f"{reason}; that is remembered and not tried again: {advice}"
        )


def encode_effect(name: str, value: object) -> object:
    """The JSON form of the result of an effect; raises `InvalidEffect` where it has none."""
    if type(value) in _PLAIN_TYPES:
        return value
    try:
        # By the type of the value, because the annotation of the function is not checked here.
        return TypeAdapter(type(value)).dump_python(value, mode="json", warnings="none")
    except Exception as error:
        kind = type(value).__name__
        raise InvalidEffect(name, f"it gave a {kind}, which is not JSON: {error}") from error


def decode_result(function: Callable[..., Any], value: Any) -> Any:  # noqa: ANN401 - JSON
    """The result of a function from its JSON, by its annotation.

    A value that does not fit the annotation stays the JSON that it is, in every attempt.
    """
    called = function
    while isinstance(called, partial):
        called = called.func
    called = getattr(called, "__func__", called)
    if "return" not in getattr(called, "__annotations__", ()):
        return value
    adapter = _find_adapter(called)
    if adapter is None:
        return value
    try:
        return _validate(adapter, value)
    except ValidationError:
        return value


def _validate(adapter: TypeAdapter[Any], value: object) -> Any:  # noqa: ANN401 - JSON
    found = adapter.validate_json(json.dumps(value))
    # An `Iterable` is validated only while it is read, and can be read only once.
    return list(found) if isinstance(found, Iterator) else found


@lru_cache(maxsize=256)
def _find_adapter(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    """What reads the results of a function; None where they are JSON, or of no known type."""
    try:
        given = typing.get_type_hints(function, include_extras=True)["return"]
    except (NameError, TypeError, AttributeError):
        return None
    if not inspect.iscoroutinefunction(function) and get_origin(given) in {Awaitable, Coroutine}:
        given = get_args(given)[-1]
    if given in _JSON_ANNOTATIONS:
        return None
    try:
        return TypeAdapter(given)
    except (PydanticUserError, NameError, TypeError):
        return None


def decode_signal(signal: str, wanted: Any, task_id: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    """The payload of a signal as the type that its step waits for; without one, as JSON."""
    if wanted is None:
        return value
    try:
        return _validate(TypeAdapter(wanted), value)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in found["loc"])
        shown = getattr(wanted, "__name__", wanted)
        reason = f"{place}{found['msg']}; the step waits for {shown}"
        raise InvalidSignal(signal, reason, task_id) from error
