"""What a stub gives for a declared shape."""

from __future__ import annotations

import jsonschema
import pytest

from holdfast.service.rehearsal import sample


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
    ],
)
def test_a_sample_fits_its_schema(schema: dict[str, object]) -> None:
    jsonschema.validate(sample(schema), schema)
