"""JSON Schema: the part of it that is quick to check and cannot hang."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from holdfast.errors import InvalidInput

Schema = Mapping[str, Any]
# The way from the whole value to a part of it; written as text only where something does not fit.
ValuePath = str | tuple["ValuePath", str | int]
Misfit = tuple[ValuePath, str]
# The scalars of each enum met during the check of one value, by the identity of the enum.
EnumScalars = dict[int, frozenset[tuple[bool, object]]]
MAX_MISFITS = 10
_SCALARS = (str, int, float, type(None))
ANNOTATIONS = frozenset({"title", "description", "default", "examples", "format", "$comment"})


def find_misfits(schema: Schema, value: object, path: str = "it") -> list[str]:
    """The first few reasons why a value does not fit, each with the path of the wrong part."""
    found = islice(_find_misfits(schema, value, path, {}), MAX_MISFITS)
    return [f"{_describe_path(where)} {reason}" for where, reason in found]


def _describe_path(path: ValuePath) -> str:
    if isinstance(path, str):
        return path
    around, part = path
    return (
        f"{_describe_path(around)}[{part}]"
        if isinstance(part, int)
        else f"{_describe_path(around)}.{part}"
    )


def fits(schema: Schema, value: object) -> bool:
    return _fits(schema, value, {})


def _fits(schema: Schema, value: object, listed: EnumScalars) -> bool:
    return next(_find_misfits(schema, value, "", listed), None) is None


def _find_misfits(
    schema: Schema,
    value: Any,  # noqa: ANN401 - JSON
    path: ValuePath,
    listed: EnumScalars,
) -> Iterator[Misfit]:
    if not _has_type(schema, value):
        wanted = schema["type"]
        kinds = [wanted] if isinstance(wanted, str) else wanted
        words = " or ".join(TYPES[kind][1] for kind in kinds)
        yield path, f"must be {words}, not {describe_kind(value)}"
        return
    for keyword in schema:
        if keyword in _CHECKS:
            yield from _CHECKS[keyword](schema, value, path, listed)
        elif keyword in _LIMITS:
            measure, holds, words = _LIMITS[keyword]
            size = measure(value)
            if size is not None and not holds(size, schema[keyword]):
                yield path, f"{words} {schema[keyword]}, not {size}"


def _has_type(schema: Schema, value: object) -> bool:
    wanted = schema.get("type")
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return TYPES[wanted][0](value)
    return any(TYPES[kind][0](value) for kind in wanted)


def _needs_check(schema: Schema, value: object) -> bool:
    """Whether a part needs more than the check of its type, which is all that most parts need."""
    return len(schema) > 1 or "type" not in schema or not _has_type(schema, value)


def _enum(schema: Schema, value: object, path: ValuePath, listed: EnumScalars) -> Iterator[Misfit]:
    if not _is_listed(schema["enum"], value, listed):
        allowed = ", ".join(map(str, schema["enum"][:MAX_MISFITS]))
        yield path, f"must be one of {allowed}"


def _is_listed(allowed: list[Any], value: object, listed: EnumScalars) -> bool:
    if not isinstance(value, _SCALARS):
        return any(is_equal_json(value, each) for each in allowed)
    if id(allowed) not in listed:
        scalars = (each for each in allowed if isinstance(each, _SCALARS))
        listed[id(allowed)] = frozenset(map(_scalar, scalars))
    return _scalar(value) in listed[id(allowed)]


def _scalar(value: object) -> tuple[bool, object]:
    """A key of a scalar: two keys are equal exactly where `is_equal_json` is true of the values."""
    return isinstance(value, bool), value


def _const(schema: Schema, value: object, path: ValuePath, _: EnumScalars) -> Iterator[Misfit]:
    if not is_equal_json(value, schema["const"]):
        yield path, f"must be {schema['const']!r}"


def _any_of(
    schema: Schema, value: object, path: ValuePath, listed: EnumScalars
) -> Iterator[Misfit]:
    if not any(_fits(each, value, listed) for each in schema["anyOf"]):
        yield path, "is none of what it may be"


def _required(schema: Schema, value: object, path: ValuePath, _: EnumScalars) -> Iterator[Misfit]:
    if isinstance(value, dict):
        for name in schema["required"]:
            if name not in value:
                yield (path, name), "is missing"


def _properties(
    schema: Schema, value: object, path: ValuePath, listed: EnumScalars
) -> Iterator[Misfit]:
    if isinstance(value, dict):
        for name, inner in schema["properties"].items():
            if name in value and _needs_check(inner, value[name]):
                yield from _find_misfits(inner, value[name], (path, name), listed)


def _additional(
    schema: Schema, value: object, path: ValuePath, listed: EnumScalars
) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        return
    known, more = schema.get("properties", {}), schema["additionalProperties"]
    for name in value:
        if name not in known and more is False:
            there = ", ".join(known) or "nothing"
            yield (path, name), f"is not declared; there is {there}"
        elif name not in known and isinstance(more, Mapping):
            yield from _find_misfits(more, value[name], (path, name), listed)


def _items(schema: Schema, value: object, path: ValuePath, listed: EnumScalars) -> Iterator[Misfit]:
    if isinstance(value, list):
        wanted = schema["items"]
        for number, inner in enumerate(value):
            if _needs_check(wanted, inner):
                yield from _find_misfits(wanted, inner, (path, number), listed)


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:  # noqa: ANN401 - JSON is any value
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _number(value: Any) -> float | None:  # noqa: ANN401 - JSON is any value
    return value if _is_number(value) else None


def _length(value: object) -> float | None:
    return len(value) if isinstance(value, str) else None


def _count(value: object) -> float | None:
    return len(value) if isinstance(value, list) else None


TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "string": (lambda value: isinstance(value, str), "text"),
    "integer": (_is_whole, "a whole number"),
    "number": (_is_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "array": (lambda value: isinstance(value, list), "a list"),
    "object": (lambda value: isinstance(value, dict), "an object"),
    "null": (lambda value: value is None, "null"),
}
_CHECKS: dict[str, Callable[[Schema, Any, ValuePath, EnumScalars], Iterator[Misfit]]] = {
    "enum": _enum,
    "const": _const,
    "anyOf": _any_of,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
}
_LIMITS: dict[str, tuple[Callable[[Any], float | None], Callable[[Any, Any], bool], str]] = {
    "minLength": (_length, operator.ge, "must be at least as long as"),
    "maxLength": (_length, operator.le, "must be no longer than"),
    "minItems": (_count, operator.ge, "must have at least"),
    "maxItems": (_count, operator.le, "must have at most"),
    "minimum": (_number, operator.ge, "must be at least"),
    "maximum": (_number, operator.le, "must be at most"),
    "exclusiveMinimum": (_number, operator.gt, "must be more than"),
    "exclusiveMaximum": (_number, operator.lt, "must be less than"),
}
LIMITS = frozenset(_LIMITS)
KEYWORDS = frozenset({"type", *_CHECKS}) | LIMITS | ANNOTATIONS


def is_equal_json(one: object, other: object) -> bool:
    """Equality of JSON: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_equal_json(one[key], other[key]) for key in one
        )
    return one == other


def fill_defaults(schema: Schema, value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """The value with defaults, or nulls where null is allowed, for fields that it leaves out."""
    if isinstance(value, list) and "items" in schema:
        return [fill_defaults(schema["items"], inner) for inner in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for name, inner in schema["properties"].items():
        if name in filled:
            filled[name] = fill_defaults(inner, filled[name])
        elif "default" in inner:
            filled[name] = inner["default"]
        elif "null" in (inner.get("type") or ()):
            filled[name] = None
    return filled


def check_input(schema: Schema, given: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """The input of a run with its defaults; a value that does not fit is refused by its field.

    None stands for an input without fields.
    """
    filled = fill_defaults(schema, {} if given is None else given)
    found = list(islice(_find_misfits(schema, filled, "input", {}), MAX_MISFITS))
    if found:
        more = "".join(f"; {_describe_path(path)} {reason}" for path, reason in found[1:])
        raise InvalidInput(_describe_path(found[0][0]), found[0][1] + more)
    return filled


def map_paths(schema: Schema, value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401
    """The value with each path changed; the schema says which texts are paths."""
    if isinstance(value, str) and schema.get("format") == "path":
        return change(value)
    if isinstance(value, list) and "items" in schema:
        return [map_paths(schema["items"], inner, change) for inner in value]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {
            name: map_paths(known[name], inner, change) if name in known else inner
            for name, inner in value.items()
        }
    return value


def find_subschema(schema: Schema | None, path: tuple[str, ...]) -> Schema | None:
    """The schema at the end of a path; None where nothing is declared there.

    A path that leads to nothing raises `KeyError` with the wrong part and the names that exist.
    """
    for part in path:
        if schema is None:
            return None
        schema = _find_part(schema, part)
    return schema


def _find_part(schema: Schema, part: str) -> Schema | None:
    known, wanted = schema.get("properties"), schema.get("type")
    kinds = {wanted} if isinstance(wanted, str) else set(wanted or ("array", "object"))
    if known is not None and part in known:
        found: Schema = known[part]
        return found
    if "object" in kinds and (known is None or schema.get("additionalProperties")):
        return None
    if "array" in kinds and part.isdigit():
        return schema.get("items")
    raise KeyError(part, tuple(known or ()))


def describe_kind(value: object) -> str:
    """The kind of a value in words for people."""
    named = (words for check, words in TYPES.values() if check(value))
    return next(named, str(value) if isinstance(value, float) else type(value).__name__)
