"""What the OpenAPI document says holds for whatever is sent, by every role: above all, no 5xx."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.contract.http.served import ROLES, Served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 2
# An answer to this one ends with the server.
ENDLESS = "/api/v1/stream"


def _read(found: Any) -> Any:  # noqa: ANN401 - schemathesis's own: an operation, or why not
    return found.ok()


@pytest.mark.filterwarnings("ignore")
def test_whatever_is_sent_the_answer_is_one_that_the_document_tells(quick_server: Served) -> None:
    told = quick_server().get(f"{quick_server.url}/openapi.json").json()
    del told["paths"][ENDLESS]
    schema = schemathesis.openapi.from_dict(told)
    operations = [found for each in schema.get_all_operations() if (found := _read(each))]
    assert len(operations) > 55
    for operation in operations:

        @settings(
            max_examples=EXAMPLES,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy(), role=st.sampled_from(ROLES))
        def ask(case: schemathesis.Case[Any], role: str) -> None:
            headers = {"Authorization": f"Bearer {quick_server.tokens[role]}"}
            answer = case.call(base_url=quick_server.url, headers=headers, timeout=20)
            case.validate_response(answer, checks=CHECKS)

        ask()
