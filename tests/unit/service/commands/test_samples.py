"""What is made up for a declared shape, as the stubs of a rehearsal give it."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.model import json_schema
from holdfast.service.commands.rehearsal import make_sample
from tests.unit.model.test_json_schema import PLAIN, VALUES, nested


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"enum": ["low", "high"]},
        {"const": 7},
        {"type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"}}}},
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "array"}},
            "required": ["a", "b"],
        },
        {"type": "integer", "minimum": 1024},
        {"type": "integer", "exclusiveMinimum": 1.5, "maximum": 2},
        {"type": "integer", "exclusiveMaximum": -3},
        {"type": "number", "exclusiveMinimum": 0.2, "exclusiveMaximum": 0.3},
        {"type": "string", "minLength": 3},
        {"type": "string", "maxLength": 0},
        {"type": "array", "items": {"type": "string"}, "minItems": 3},
        {"type": "array", "maxItems": 1},
        {"type": "array", "items": {"enum": []}},
        {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]},
        {"type": "integer", "anyOf": [{"minimum": 5}]},
        {"type": "integer", "default": "x", "enum": ["a", 7]},
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"enum": []}}},
    ],
)
def test_a_sample_fits_its_schema(schema: dict[str, object]) -> None:
    jsonschema.validate(make_sample(schema), schema)


@settings(max_examples=400)
@given(st.recursive(PLAIN, nested, max_leaves=4), VALUES)
def test_a_fitting_sample_is_found_where_some_value_fits(
    schema: json_schema.Schema, value: object
) -> None:
    assume(json_schema.fits(schema, value))
    assert json_schema.fits(schema, make_sample(schema))


def test_a_sample_is_given_even_where_no_value_fits() -> None:
    assert make_sample({"type": "string", "minLength": 2, "maxLength": 1}) == "…"
    for limit in (float("inf"), float("nan"), 10**400):
        assert make_sample({"type": "integer", "minimum": limit}) == 1
