"""The schema for editors: made from the table that the reader goes by, and agrees with it."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from holdfast.definition.keys import SECTIONS
from holdfast.definition.schema import KINDS, make_key_tables, make_schema
from holdfast.definition.values import READERS
from tests.unit.definition.workflow_files import FEATURE, mistakes

VALIDATOR = jsonschema.Draft202012Validator(make_schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(make_schema())


def test_a_workflow_that_the_reader_takes_is_taken_by_the_schema() -> None:
    VALIDATOR.validate(yaml.safe_load(FEATURE))
    assert mistakes(FEATURE) == []


@pytest.mark.parametrize(
    "flow",
    [
        {"steps": [{"id": "a", "run": ["x"]}]},
        {"name": "w"},
        {"name": "w", "steps": [{"id": "a", "rnu": ["x"]}]},
        {"name": "w", "steps": [{"id": "a", "run": "x"}]},
        {"name": "w", "steps": [{"id": "../a", "run": ["x"]}]},
        {"name": "w", "steps": [{"id": "a", "run": ["x"], "max_attempts": 0}]},
        {"name": "w", "steps": [{"id": "a", "run": ["x"], "on_failure": {"go": "b"}}]},
        {"name": "w", "budget": {"usd": 0}, "steps": [{"id": "a", "run": ["x"]}]},
        {"name": "w", "workspace": {}, "steps": [{"id": "a", "run": ["x"]}]},
    ],
)
def test_a_workflow_that_the_schema_refuses_is_refused_by_the_reader(flow: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(flow)
    assert mistakes(yaml.safe_dump(flow))


def test_every_kind_of_key_has_a_reader_and_a_schema() -> None:
    kinds = {key.kind for section in SECTIONS for key in section.keys}
    assert kinds == KINDS.keys()
    assert kinds - READERS.keys() == {"agents", "steps"}


def test_the_page_names_every_key() -> None:
    page = make_key_tables()
    assert [key.name for s in SECTIONS for key in s.keys if f"`{key.name}`" not in page] == []
