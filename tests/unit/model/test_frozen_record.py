"""Records that are made at once."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict, dataclass, replace

import pytest

from holdfast.model.frozen_record import make_record


@dataclass(frozen=True, kw_only=True)
class Parcel:
    name: str
    weight: int = 1
    stamps: tuple[str, ...] = ()


def test_a_filled_record_is_the_same_as_one_that_was_made() -> None:
    made, filled = Parcel(name="a", weight=2), make_record(Parcel, {"name": "a", "weight": 2})
    assert filled == made
    assert (hash(filled), repr(filled), asdict(filled)) == (hash(made), repr(made), asdict(made))
    assert replace(filled, name="b") == replace(made, name="b")


def test_a_filled_record_is_frozen() -> None:
    filled = make_record(Parcel, {"name": "a"})
    assert filled.name == "a"
    with pytest.raises(FrozenInstanceError):
        setattr(filled, "name", "c")  # noqa: B010 - as somebody without a type checker would
