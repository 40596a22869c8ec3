"""Values against their types: the same verdict as a whole JSON Schema would give."""

from __future__ import annotations

import math
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.model import json_schema

LEAVES = st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, -2, "", "a", "ab"])
NAMES = st.sampled_from(["a", "b"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
KINDS = st.sampled_from(list(json_schema.TYPES))
PLAIN = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"type": KINDS | st.lists(KINDS, min_size=2, max_size=3, unique=True)}),
    st.fixed_dictionaries({"enum": st.lists(LEAVES, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": VALUES}),
    st.fixed_dictionaries({"minLength": st.integers(0, 2), "maximum": st.integers(-2, 1)}),
    st.fixed_dictionaries({"maxLength": st.integers(0, 1), "minimum": st.integers(-2, 1)}),
    st.fixed_dictionaries({"exclusiveMinimum": st.integers(-2, 1)}),
    st.fixed_dictionaries({"exclusiveMaximum": st.integers(-2, 1)}),
    st.fixed_dictionaries({"minItems": st.integers(0, 2), "maxItems": st.integers(0, 2)}),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.fixed_dictionaries({"items": inner}, optional={"type": st.just("array")}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries(
            {"properties": st.fixed_dictionaries({"a": inner})},
            optional={
                "type": st.just("object"),
                "required": st.lists(NAMES, max_size=2, unique=True),
                "additionalProperties": st.booleans() | inner,
            },
        ),
    )


@settings(max_examples=400)
@given(st.recursive(PLAIN, nested, max_leaves=4), VALUES)
def test_a_value_fits_exactly_when_json_schema_says_so(
    schema: json_schema.Schema, value: object
) -> None:
    wanted = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (json_schema.find_misfits(schema, value) == []) is wanted


@pytest.mark.parametrize("part", [{"enum": [1]}, {"const": 1}, {"anyOf": [{"type": "null"}]}])
def test_a_part_that_says_nothing_of_its_type_is_looked_at_all_the_same(
    part: json_schema.Schema,
) -> None:
    assert json_schema.find_misfits({"properties": {"a": part}}, {"a": 2})
    assert json_schema.find_misfits({"items": part}, [2])
    assert json_schema.find_misfits({"additionalProperties": part}, {"a": 2})


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": ["integer", "null"]},
        "home": {"type": "string", "format": "path", "default": "."},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def test_input_is_filled_with_defaults_and_with_null_for_what_may_be_null() -> None:
    filled = json_schema.check_input(PERSON, {"name": "Ada"})
    assert filled == {"name": "Ada", "age": None, "home": "."}


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (None, "input.name", "is missing"),
        ({"name": 5}, "input.name", "must be text, not a whole number"),
        ({"name": "A", "tags": ["x", 1]}, "input.tags[1]", "must be text, not a whole number"),
        ({"name": "A", "nmae": "B"}, "input.nmae", "is not declared; there is name, age"),
        ([], "input", "must be an object, not a list"),
    ],
)
def test_input_that_does_not_fit_is_refused_by_the_name_of_its_field(
    value: object, field: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        json_schema.check_input(PERSON, value)
    assert refused.value.field == field
    assert refused.value.reason.startswith(reason)


@pytest.mark.parametrize("wanted", ["integer", "number", ["integer", "null"]])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_number_that_json_does_not_have_is_no_number(wanted: object, value: float) -> None:
    schema = {"type": "object", "properties": {"n": {"type": wanted}}}
    with pytest.raises(InvalidInput, match=rf"input\.n: must be a .*number.*, not {value}"):
        json_schema.check_input(schema, {"n": value})


def test_a_whole_number_of_any_length_is_whole() -> None:
    assert json_schema.fits({"type": "integer"}, 10**400)
    assert json_schema.fits({"type": "integer"}, 1e300)


def test_a_value_that_is_not_json_is_none_of_those_allowed() -> None:
    with pytest.raises(InvalidInput, match="must be one of a"):
        json_schema.check_input({"properties": {"n": {"enum": ["a"]}}}, {"n": {1}})


class Counted(int):
    """A number that counts how often any of them is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    def __hash__(self) -> int:
        return int(self)


def test_each_value_is_looked_up_among_those_allowed_and_not_compared_with_all() -> None:
    allowed = [Counted(number) for number in range(500)]
    schema = {"type": "array", "items": {"anyOf": [{"enum": allowed}]}}
    assert json_schema.fits(schema, [499] * 500)
    assert Counted.compared <= 2_000


@given(st.lists(VALUES, max_size=4), VALUES)
def test_a_value_fits_a_list_exactly_when_it_is_the_same_as_one_of_its_values(
    allowed: list[object], value: object
) -> None:
    wanted = any(json_schema.is_equal_json(value, each) for each in allowed)
    assert json_schema.fits({"enum": allowed}, value) is wanted


def test_every_misfit_is_told_up_to_a_few() -> None:
    found = json_schema.find_misfits(
        {"type": "array", "items": {"type": "string"}}, list(range(50))
    )
    assert len(found) == json_schema.MAX_MISFITS
    assert found[0] == "it[0] must be text, not a whole number"


def test_paths_are_changed_wherever_they_are_declared() -> None:
    schema = {
        "type": "object",
        "properties": {
            "home": {"type": "string", "format": "path"},
            "more": {"type": "array", "items": {"type": "string", "format": "path"}},
            "name": {"type": "string"},
        },
    }
    given_ = {"home": "a", "more": ["b"], "name": "c", "other": "d"}
    changed = json_schema.map_paths(schema, given_, lambda path: f"/{path}")
    assert changed == {"home": "/a", "more": ["/b"], "name": "c", "other": "d"}
