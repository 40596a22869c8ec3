"""References: paths to a value in the input, in the output of a step, or in the item of a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from holdfast.errors import InvalidInput

MOST_NAMED = 20
# Python refuses to read numbers of thousands of digits, and no list is so long.
MAX_DIGITS = 18
ROOTS = ("input", "steps", "item")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:/@+-]*")


class Unresolved(LookupError):
    """A reference that leads to nothing; the message says how far it led."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A path such as `steps.plan.stories`, with or without braces around it."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, field: str, text: object, *, roots: tuple[str, ...] = ROOTS) -> Self:
        if not isinstance(text, str):
            raise InvalidInput(field, f"must be a reference, not {type(text).__name__}")
        parts = tuple(_without_braces(text.strip()).split("."))
        if not all(_PART.fullmatch(part) for part in parts):
            raise InvalidInput(field, f"{text!r} is no reference such as {{{{ steps.plan.list }}}}")
        if parts[0] not in roots:
            raise InvalidInput(field, f"{text!r} begins with none of {', '.join(roots)}")
        if parts[0] == "steps" and len(parts) == 1:
            raise InvalidInput(field, f"{text!r} names no step")
        return cls(parts)

    @property
    def root(self) -> str:
        return self.parts[0]

    @property
    def step(self) -> str | None:
        return self.parts[1] if self.parts[0] == "steps" else None

    @property
    def is_whole_output(self) -> bool:
        """Whether the reference is to the whole output of a step."""
        return self.parts[0] == "steps" and len(self.parts) == len(("steps", "name"))

    def resolve(self, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON is any value
        value: Any = variables
        for place, part in enumerate(self.parts):
            value = _value_inside(value, part, ".".join(self.parts[: place + 1]))
        return value

    def __str__(self) -> str:
        return ".".join(self.parts)


def _without_braces(text: str) -> str:
    return text[2:-2].strip() if text.startswith("{{") and text.endswith("}}") else text


def _value_inside(value: object, part: str, shown: str) -> object:
    if isinstance(value, Mapping):
        if part not in value:
            known = ", ".join(map(str, islice(value, MOST_NAMED))) or "nothing"
            raise Unresolved(f"there is no {shown}; there is {known}")
        return value[part]
    if isinstance(value, Sequence) and not isinstance(value, str) and part.isdigit():
        if len(part) > MAX_DIGITS or int(part) >= len(value):
            raise Unresolved(f"there is no {shown}; the list has {len(value)}")
        return value[int(part)]
    raise Unresolved(f"{shown} leads into {type(value).__name__}, which holds no other values")
