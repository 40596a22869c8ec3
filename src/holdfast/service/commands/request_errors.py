"""Request errors: refused transitions, renamed fields, and mistakes in the shape of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from typing import Any

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.advice import join_texts
from holdfast.model.result import Refusal, TransitionResult

STOP = "stop, and change nothing more: the attempt is over"
MAX_ERRORS = 50
MAX_SHOWN = 40
# Fields that callers expect by another word, with the field that is meant and how to use it.
_OTHER_WORDS = {
    "idle": ("enqueue", "`enqueue: false` keeps it idle"),
    "no_enqueue": ("enqueue", "`enqueue: false` keeps it idle"),
    "depends_on": ("needs", "it is called 'needs'"),
    "blocked_by": ("needs", "it is called 'needs'"),
    "parent_id": ("parent", "it is called 'parent'"),
    "retries": ("max_attempts", "it is called 'max_attempts'"),
    "id": ("task_id", "it is called 'task_id'"),
}
# Fields whose values must not appear in an error.
_SECRET_FIELDS = {("token",), ("code",)}
_TYPE_TEXTS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}
# The names by which pydantic locates an error in one of several plain types.
_PLAIN_TYPES = frozenset({"str", "int", "float", "bool"})
PydanticError = Mapping[str, Any]
DescribeWanted = Callable[[Mapping[str, Any]], str]


class Refused(HoldfastError):
    """A refused transition: its code, the run or task, and the reason."""

    def __init__(self, identifier: str, answer: TransitionResult) -> None:
        self.identifier = identifier
        self.reason = answer.reason or Refusal.INVALID_TRANSITION
        self.detail = answer.detail
        self.status = answer.status
        super().__init__(f"{identifier}: {self.reason}; " + answer.detail)


def require_accepted(identifier: str, answer: TransitionResult) -> TransitionResult:
    """Return an answer that is a success or a repetition; raise `Refused` for any other."""
    if not answer.ok and not answer.repeated:
        raise Refused(identifier, answer)
    return answer


def require_may_act(identifier: str, answer: TransitionResult) -> TransitionResult:
    """The same for an attempt that asks whether it may act; a refusal tells it to stop."""
    if answer.ok or answer.reason == Refusal.NOT_FOUND:
        return require_accepted(identifier, answer)
    told = join_texts("; ", filter(None, (answer.detail, STOP)))
    raise Refused(identifier, replace(answer, detail=told))


@contextmanager
def rename_fields(**fields: str) -> Iterator[None]:
    """Name a field that is wrong as the caller has named it, not as the engine does."""
    try:
        yield
    except InvalidInput as error:
        if error.field not in fields:
            raise
        raise InvalidInput(fields[error.field], error.reason) from error


@dataclass(frozen=True, kw_only=True)
class FieldMistake:
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


_WANTED_BY_TYPE: dict[str, DescribeWanted] = {
    "string": lambda _: "text",
    "int": lambda _: "a whole number",
    "float": lambda _: "a number",
    "bool": lambda _: "true or false",
    "list": lambda _: "a list",
    "dict": lambda _: "an object",
    "model": lambda _: "an object",
    "greater_than_equal": lambda said: f"{_as_plain_number(said['ge'])} or more",
    "greater_than": lambda said: f"more than {_as_plain_number(said['gt'])}",
    "less_than_equal": lambda said: f"{_as_plain_number(said['le'])} at most",
    "less_than": lambda said: f"less than {_as_plain_number(said['lt'])}",
    "finite_number": lambda _: "a finite number",
    "literal_error": lambda said: str(said["expected"]),
    "string_pattern_mismatch": lambda said: f"like {said['pattern']}",
    "string_too_long": lambda said: f"{said['max_length']} characters long at most",
    "too_long": lambda said: f"{said['max_length']} entries long at most",
}


def translate_errors(
    errors: Sequence[PydanticError], known: Sequence[str] = ()
) -> list[FieldMistake]:
    """Translate the errors of pydantic into mistakes; `known` are the fields of the shape."""
    fields = groupby(_choose_nearest_shape(errors)[:MAX_ERRORS], key=_field_name)
    return [
        FieldMistake(field=field or "body", message=_describe_errors(list(each), known))
        for field, each in fields
    ]


def _choose_nearest_shape(errors: Sequence[PydanticError]) -> Sequence[PydanticError]:
    """Where a body may have one of several shapes, choose the errors of the nearest shape."""
    shapes = [list(each) for _, each in groupby(errors, key=_shape_name)]
    named = [each for each in shapes if _shape_name(each[0])]
    if len(named) < 2:  # noqa: PLR2004 - one shape alone is the one that is meant
        return errors
    return min(named, key=len)


def _shape_name(error: PydanticError) -> str:
    """The name of the class that pydantic tried, which is part of the location of the error."""
    parts = [each for each in error["loc"][:2] if isinstance(each, str)]
    return next((each for each in parts if each[:1].isupper()), "")


def _field_name(error: PydanticError) -> str:
    parts = list(error["loc"])
    if parts[:1] == ["query"]:
        return str(parts[1])
    if parts and parts[0] in {"body", "path", "header"}:
        parts = parts[1:]
    if parts and parts[-1] in _PLAIN_TYPES:
        parts = parts[:-1]
    return ".".join(str(each) for each in parts if str(each) != _shape_name(error))


def _describe_errors(of_field: Sequence[PydanticError], known: Sequence[str]) -> str:
    """Describe the errors of one field; each type that it may have expects something else."""
    first = of_field[0]
    if first["type"] == "missing":
        return "is missing"
    if first["type"] == "extra_forbidden":
        return _describe_unknown_field(first, known)
    wanted = " or ".join(_describe_wanted(each) for each in of_field)
    return f"must be {wanted}, not {_describe_given(first)}"


def _describe_wanted(error: PydanticError) -> str:
    kind = str(error["type"])
    stem = kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_attributes")
    say = _WANTED_BY_TYPE.get(stem)
    return f"right ({error['msg']})" if say is None else say(error.get("ctx") or {})


def _as_plain_number(number: float) -> float:
    return int(number) if number == int(number) else number


def _describe_unknown_field(error: PydanticError, known: Sequence[str]) -> str:
    name = _field_name(error)
    told = f"is no {'parameter' if error['loc'][0] == 'query' else 'field'} of this"
    if not known or "." in name:
        return told
    meant, how = _OTHER_WORDS.get(name, ("", ""))
    if meant in known:
        return f"{told}; {how}"
    close = get_close_matches(name, known, n=1)
    more = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return f"{told}; {more}"


def _describe_given(error: PydanticError) -> str:
    value = error.get("input")
    if error["type"] == "too_long":
        return str(error["ctx"]["actual_length"])
    if value is None:
        return "null"
    if isinstance(value, list | dict | bytes) or error["loc"][-1:] in _SECRET_FIELDS:
        return _TYPE_TEXTS.get(type(value), "bytes")
    shown = ascii(value)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
