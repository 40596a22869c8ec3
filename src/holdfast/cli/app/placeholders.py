"""Placeholders that are typed as they stand: `TITLE`, `N`, `…`; they are refused by parameter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from holdfast.model.placeholder import is_placeholder

_NUMBERS = (int, float, int | None, float | None)
_ANY_NUMBER = frozenset({"N", "NUMBER"})
_ANY_TEXT = frozenset({"TEXT", "MODULE:NAME"})


def refuse_typed_placeholder(parameter: Any, context: Any, value: Any) -> None:  # noqa: ANN401 - Typer's own
    """Refuse the word by which help and advice name a value, and say what the value is."""
    for each in _typed_texts(value):
        if is_placeholder(each, typed=True) or each in _words_of(parameter):
            reason = f"{each!r} only stands for {_describe_value(parameter)}"
            raise typer.BadParameter(reason, ctx=context, param=parameter)


def _typed_texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - Typer's own
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, str):
            yield each


def _takes_number(parameter: Any) -> bool:  # noqa: ANN401 - Typer's own
    descriptor = getattr(parameter, "type_descriptor", None)
    return getattr(descriptor, "annotation", None) in _NUMBERS


def _words_of(parameter: Any) -> frozenset[str]:  # noqa: ANN401 - Typer's own
    words = _ANY_NUMBER if _takes_number(parameter) else _ANY_TEXT
    own = parameter.metavar
    if own is None and parameter.param_type_name == "argument":
        own = parameter.name.upper()
    return words if own is None else words | {own, f"[{own}]"}


def _describe_value(parameter: Any) -> str:  # noqa: ANN401 - Typer's own
    if _takes_number(parameter):
        return "a number; write one, such as 5"
    told = str(parameter.help or "").rstrip(".")
    return f"what is to be written there: {told[:1].lower()}{told[1:]}"
