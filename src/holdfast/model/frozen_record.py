"""Frozen records: the base of records that people read, and how to make one 1.4 times as fast."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.model.moment import describe_moment
from holdfast.model.status import Hold

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MOMENTS = frozenset({"at", "scheduled_for", "held_until"})


class ReadableRecord:
    """A record whose repr shows times as dates, holds and statuses by name, without Nones."""

    __slots__ = ()

    def __repr__(self: DataclassInstance) -> str:
        given = ((each, getattr(self, each.name)) for each in fields(self) if each.repr)
        said = ", ".join(
            f"{each.name}={_describe_field(each.name, value)}"
            for each, value in given
            # An empty mapping says nothing where a record without one has that.
            if value is not None and not (each.default_factory is dict and not value)
        )
        return f"{type(self).__name__}({said})"


def _describe_field(name: str, value: Any) -> str:  # noqa: ANN401 - whatever a record holds
    if isinstance(value, Hold):
        return f"[{', '.join(value.names)}]"
    if isinstance(value, StrEnum):
        return repr(value.value)
    if isinstance(value, datetime):
        return describe_moment(value)
    if isinstance(value, int) and (name in _MOMENTS or name.endswith("_at")):
        return describe_moment(value)
    return repr(value)


T = TypeVar("T")


def make_record(kind: type[T], values: dict[str, Any]) -> T:
    """A frozen dataclass with these fields; the other fields have the plain defaults of the class.

    The `__init__` of a frozen dataclass sets each field through `object.__setattr__`, which takes
    many times as long for a wide record. The class must have no slots. The record keeps `values`
    itself: the caller must not change them later.
    """
    record = object.__new__(kind)
    object.__setattr__(record, "__dict__", values)
    return record
