"""Lexer: the tokens of a YAML or JSON text in order, with their marks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from holdfast.definition.findings import UnreadableValue
from holdfast.definition.nodes import Mark

TokenKind = Literal["scalar", "alias", "[", "]", "{", "}"]


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    mark: Mark
    end: int
    value: Any = None
    anchor: str | None = None


_BRACKETS: dict[str, TokenKind] = {"[": "[", "]": "]", "{": "{", "}": "}"}
_STARTS: dict[type[yaml.Event], TokenKind] = {
    yaml.SequenceStartEvent: "[",
    yaml.SequenceEndEvent: "]",
    yaml.MappingStartEvent: "{",
    yaml.MappingEndEvent: "}",
}
# The words of JSON and no others: `yes`, `on` and 12:30 are text, as their author meant them.
_PLAIN: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][-+]?[0-9]{1,2})?")
_JSON = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<mark>[\[\]{},:])
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<word>-?[0-9][0-9.eE+-]*|true|false|null)
    """,
    re.VERBOSE,
)
_SHOWN = 30
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str) -> Iterator[Token]:
    """The tokens of the one document of a YAML text."""
    documents = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            mark, end = _mark(event.start_mark), event.end_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise UnreadableValue(
                        mark, "a second document begins here; one file, one workflow"
                    )
            elif isinstance(event, yaml.AliasEvent):
                yield Token("alias", mark, end, anchor=event.anchor)
            elif isinstance(event, yaml.NodeEvent):
                yield _node_token(event, mark, end)
            elif type(event) in _STARTS:
                yield Token(_STARTS[type(event)], mark, end)
    except yaml.MarkedYAMLError as error:
        raise UnreadableValue(*_describe_error(error, text)) from None
    except yaml.reader.ReaderError as error:
        raise UnreadableValue(
            _mark_at(text, error.position), "a character that YAML does not take"
        ) from None


def _node_token(event: Any, mark: Mark, end: int) -> Token:  # noqa: ANN401 - the events have no types
    if event.tag is not None and event.tag != "!":
        raise UnreadableValue(mark, f"tags such as {event.tag} are not taken", "leave the tag out")
    if not isinstance(event, yaml.ScalarEvent):
        return Token(_STARTS[type(event)], mark, end, anchor=event.anchor)
    value = _plain_value(event.value) if event.implicit[0] else event.value
    return Token("scalar", mark, end, value=value, anchor=event.anchor)


def _plain_value(text: str) -> str | float | bool | None:
    """The value of a word without quotes."""
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) and not text.lstrip("+-").isdigit() else text


def _describe_error(error: yaml.MarkedYAMLError, text: str) -> tuple[Mark, str, str]:
    problem = error.problem or "this is not YAML"
    found = error.problem_mark or error.context_mark
    mark = Mark(1, 1) if found is None else _mark(found)
    line = (*text.splitlines()[mark.line - 1 : mark.line], "")[0]
    if line[mark.column - 1 : mark.column] == "\t":
        return mark, "a tab, where YAML takes spaces alone", "indent by spaces"
    hint = f"{error.context}" if error.context else ""
    began = error.context_mark
    if hint and began is not None and began.line + 1 != mark.line:
        hint += f", which begins at {began.line + 1}:{began.column + 1}"
    return mark, problem, hint


def _mark(mark: Any) -> Mark:  # noqa: ANN401 - the marks have no types
    return Mark(mark.line + 1, mark.column + 1)


def _mark_at(text: str, position: int) -> Mark:
    before = text[:position]
    return Mark(before.count("\n") + 1, position - before.rfind("\n"))


def read_json(text: str) -> Iterator[Token]:
    """The tokens of a JSON text; the standard library checks commas and colons first."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UnreadableValue(
            Mark(error.lineno, error.colno), f"this is not JSON: {error.msg}"
        ) from None
    except (RecursionError, ValueError):
        # Nested too deep, or a number too long for `json`: the composer reports these with a mark.
        pass
    line, start = 1, 0
    for found in _JSON.finditer(text):
        mark = Mark(line, found.start() - start + 1)
        if found["space"] is not None:
            if "\n" in found[0]:
                line += found[0].count("\n")
                start = found.start() + found[0].rfind("\n") + 1
        elif found["mark"] in _BRACKETS:
            yield Token(_BRACKETS[found["mark"]], mark, line)
        elif found["mark"] is None:
            yield Token("scalar", mark, line, value=_json_value(found[0], mark))


def _refuse_constant(name: str) -> None:
    raise UnreadableValue(Mark(1, 1), f"{name} is a number that JSON does not have")


def _json_value(text: str, mark: Mark) -> Any:  # noqa: ANN401 - JSON is any value
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UnreadableValue(mark, f"this is not JSON: {error}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise UnreadableValue(mark, f"{text[:_SHOWN]} is a number too large to be kept")
    return value
