"""Shapes: a field is described once, and a view holds what its shape describes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from holdfast.service.queries.shapes import Shape, field, given

SHAPE = Shape(
    field("id", kind=str, example="t_1"),
    field("most", "retry.most", example=3),
    field("tags", lambda record: list(record.tags)),
    given("state", kind=str, example="ready"),
)
RECORD = SimpleNamespace(id="t_2", retry=SimpleNamespace(most=None), tags=("gpu",))


def test_a_view_has_the_fields_of_its_shape_in_their_order_and_no_nulls() -> None:
    view = SHAPE.view(RECORD, state="running")
    assert list(view.items()) == [("id", "t_2"), ("tags", ["gpu"]), ("state", "running")]


def test_the_example_of_a_shape_has_the_fields_with_an_example() -> None:
    assert SHAPE.example() == {"id": "t_1", "most": 3, "state": "ready"}


def test_a_field_that_is_described_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="id is described twice"):
        Shape(field("id"), given("state"), field("id", "retry.most"))


def test_a_field_that_is_given_and_not_described_is_refused() -> None:
    with pytest.raises(TypeError, match="described as given: usage"):
        SHAPE.view(RECORD, usage={})
