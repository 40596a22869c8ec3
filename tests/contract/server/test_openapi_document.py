"""What the OpenAPI document says holds for whatever is sent, by every role: above all, no 5xx."""

from __future__ import annotations

import os
from typing import Any

import jsonschema
import pytest

from tests.contract.server.local_server import ROLES, Served

# As many for each role, where somebody asks for more.
EXAMPLES = int(os.environ.get("HOLDFAST_TEST_EXAMPLES", "2"))
QUICK = EXAMPLES == 2
# An answer to this one ends with the server.
ENDLESS = "/api/v1/stream"


@pytest.mark.timeout(120 if QUICK else 36_000)
@pytest.mark.filterwarnings("ignore")
def test_every_answer_is_one_that_the_document_tells_whatever_is_sent(quick_server: Served) -> None:
    told = quick_server().get(f"{quick_server.url}/openapi.json").json()
    del told["paths"][ENDLESS]
    # It takes seconds to import, in each process that only collects.
    from tests.contract.server.generated_calls import make_up_calls  # noqa: PLC0415

    examples = EXAMPLES if QUICK else EXAMPLES * len(ROLES)
    assert make_up_calls(quick_server, told, examples=examples, quick=QUICK) > 55


def test_every_body_that_is_sent_or_answered_has_an_example_that_fits(quick_server: Served) -> None:
    told = quick_server().get(f"{quick_server.url}/openapi.json").json()
    shapes = told["components"]["schemas"]
    assert [name for name, shape in shapes.items() if not shape.get("examples")] == []
    seen = 0
    for path, verbs in told["paths"].items():
        for method, operation in verbs.items():
            bodies = [operation["requestBody"]] if "requestBody" in operation else []
            for body in [*bodies, *operation["responses"].values()]:
                for media, shape in body.get("content", {}).items():
                    if media.endswith("json"):
                        _fits(told, shape, (method, path))
                        seen += 1
    assert seen > 500


def _fits(told: dict[str, Any], media: dict[str, Any], where: tuple[str, str]) -> None:
    schema = media.get("schema", {})
    named = _named(told, schema)
    examples = [media["example"]] if "example" in media else named.get("examples", [])
    if schema == {"type": "object"} and not examples:
        return
    assert examples, where
    for each in examples:
        whole = {**schema, "components": told["components"]}
        jsonschema.Draft202012Validator(whole).validate(each)


def _named(told: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The shape that a schema names, of several the first."""
    kinds = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    names = [each["$ref"].rpartition("/")[2] for each in kinds if "$ref" in each]
    return dict(told["components"]["schemas"][names[0]]) if names else {}
