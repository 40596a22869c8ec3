"""Response schemas: those of records are made from the shapes that the service makes views from."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from holdfast.server.schemas import responses
from holdfast.server.schemas.responses import DescribedResponse, described_by
from holdfast.service.admin.tokens import TOKEN
from holdfast.service.queries.shapes import Shape, field
from holdfast.service.queries.views import EVENT, RUN, SCHEDULE, TASK

SCHEMAS = [
    each
    for each in vars(responses).values()
    if isinstance(each, type)
    and issubclass(each, BaseModel)
    and each.__module__ == responses.__name__
    and each is not DescribedResponse
    and "[" not in each.__name__
]


def test_a_field_that_is_added_to_a_shape_is_in_its_schema_and_example() -> None:
    @described_by(Shape(field("id", kind=str, example="t_1"), field("key", example="k")))
    class Small(DescribedResponse):
        pass

    assert Small.model_json_schema() == {
        "title": "Small",
        "type": "object",
        "properties": {"id": {"title": "Id", "type": "string"}},
        "required": ["id"],
        "additionalProperties": True,
        "examples": [{"id": "t_1", "key": "k"}],
    }


def test_a_schema_that_describes_a_field_besides_its_shape_is_refused() -> None:
    with pytest.raises(TypeError, match="Twice describes fields"):

        @described_by(TASK)
        class Twice(DescribedResponse):
            id: int


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        (responses.TaskResponse, TASK),
        (responses.RunResponse, RUN),
        (responses.EventResponse, EVENT),
        (responses.ScheduleResponse, SCHEDULE),
        (responses.TokenResponse, TOKEN),
    ],
)
def test_a_record_is_described_by_its_shape_alone(
    schema: type[DescribedResponse], shape: Shape
) -> None:
    described = {name for name, each in shape.fields.items() if each.kind is not None}
    assert {*schema.model_fields} == described
    assert schema.example() == shape.example()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_example_of_a_response_is_one(schema: type[BaseModel]) -> None:
    told: dict[str, Any] = schema.model_json_schema()
    (example,) = told["examples"]
    TypeAdapter(schema).validate_python(example, strict=True)
    assert all("examples" not in each for each in told.get("properties", {}).values())
