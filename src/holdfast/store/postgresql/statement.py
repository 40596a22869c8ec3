"""Statements with numbered parameters, whose values are sent as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import psycopg

Types = tuple[int, ...]
Values = list[bytes | None]

_PARAMETER = re.compile(r"%\((\w+)\)s|%%")
# The type of a text is left to the server, which knows it from the statement, as for a literal.
_BIGINT, _BOOLEAN, _TYPE_FROM_CONTEXT = 20, 16, 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement:
    text: bytes
    names: tuple[str, ...]

    def bind(self, parameters: Mapping[str, object]) -> tuple[Types, Values]:
        types: list[int] = []
        values: Values = []
        for name in self.names:
            kind, value = _dump(parameters[name])
            types.append(kind)
            values.append(value)
        return tuple(types), values


@cache
def number_parameters(text: str) -> Statement:
    """Number the parameters of a text; the result is cached, since the text of a query is fixed."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return Statement(text=_PARAMETER.sub(number, text).encode(), names=tuple(names))


def _dump(value: object) -> tuple[int, bytes | None]:
    match value:
        case str():
            dumped = value.encode()
            if b"\0" in dumped:
                # The protocol would end the text at the NUL without an error.
                raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
            return _TYPE_FROM_CONTEXT, dumped
        case None:
            return _TYPE_FROM_CONTEXT, None
        case bool():
            return _BOOLEAN, b"t" if value else b"f"
        case int():
            return _BIGINT, b"%d" % value
        case _:
            raise TypeError(f"{type(value).__name__} is no parameter of a query")
