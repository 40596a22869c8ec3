"""Shapes: each thing that is answered as JSON, described once, field by field.

A field says where its value is read, and, if the OpenAPI document describes it, of which type it
is, what it means and how one looks. The view of a record and its schema in the document are both
made from this description. What is null is absent from a view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

Read = Callable[[Any], Any]


class ExampleOf:
    """The values that the examples of the OpenAPI document share."""

    TIME = "2026-03-02T09:00:00.000000Z"
    LATER = "2026-03-02T09:00:30.000000Z"
    TASK_ID = "t_01m7grt6s94kyx9tyr2q"
    RUN_ID = "r_01m7grt6wxarbfxftyf2"
    BASE = "8d2b0c1f3e4a5b6c7d8e9f0a1b2c3d4e5f607182"
    COMMIT = "a91c3e5d7f902b4c6d8e0f1a2b3c4d5e6f708192"
    TOKEN = "1.f36cbad2299f61fe24fd7fd6beaa3d74"  # noqa: S105 - of no attempt
    VERSION = "1eb8a24047732df7ecc81d3ee33700ff"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field: `read` from the record, or given beside it where there is nothing to read.

    The OpenAPI document describes a field that has a `kind`, and shows those that have an example.
    """

    name: str
    read: Read | None
    kind: Any = None
    example: Any = None
    description: str | None = None


def field(
    name: str,
    read: str | Read | None = None,
    *,
    kind: Any = None,  # noqa: ANN401 - a type, which may be generic
    example: Any = None,  # noqa: ANN401 - JSON is any value
    description: str | None = None,
) -> Field:
    """A field that is read by a path of attributes, by default the one of its name."""
    getter = read if callable(read) else attrgetter(read or name)
    return Field(name=name, read=getter, kind=kind, example=example, description=description)


def given(
    name: str,
    *,
    kind: Any = None,  # noqa: ANN401 - a type, which may be generic
    example: Any = None,  # noqa: ANN401 - JSON is any value
    description: str | None = None,
) -> Field:
    """A field that is not in the record: whoever makes the view gives it."""
    return Field(name=name, read=None, kind=kind, example=example, description=description)


class Shape:
    """The fields of one kind of record, in the order in which a view has them."""

    def __init__(self, *fields: Field) -> None:
        self.fields = {each.name: each for each in fields}
        names = [each.name for each in fields]
        if twice := {name for name in names if names.count(name) > 1}:
            raise TypeError(f"{', '.join(sorted(twice))} is described twice")
        self._reads = [(each.name, each.read) for each in fields]
        self._given = {each.name for each in fields if each.read is None}

    def view(self, record: object, **given: object) -> dict[str, Any]:
        if not given.keys() <= self._given:
            unknown = ", ".join(sorted({*given} - self._given))
            raise TypeError(f"not described as given: {unknown}")
        return {
            name: value
            for name, read in self._reads
            if (value := given.get(name) if read is None else read(record)) is not None
        }

    def example(self) -> dict[str, Any]:
        """One record as the document shows it."""
        examples = {name: each.example for name, each in self.fields.items()}
        return {name: value for name, value in examples.items() if value is not None}
