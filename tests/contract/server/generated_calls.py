"""Calls made up from an OpenAPI document, and their answers held against it."""

from __future__ import annotations

import warnings
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.contract.server.local_server import ROLES, Served

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


def make_up_calls(server: Served, told: dict[str, Any], *, examples: int, quick: bool) -> int:
    """Make so many calls of each operation that a document tells of; how many operations it has."""
    schema = schemathesis.openapi.from_dict(told)
    operations = [found for each in schema.get_all_operations() if (found := _read(each))]
    for operation in operations:

        @settings(
            max_examples=examples,
            phases=[Phase.generate] if quick else [Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            derandomize=quick,
            deadline=None,
            database=None,
        )
        @given(case=operation.as_strategy(), role=st.sampled_from(ROLES))
        def ask(case: schemathesis.Case[Any], role: str) -> None:
            if isinstance(case.body, dict) and "wait_seconds" in case.body:
                case.body["wait_seconds"] = 0
            headers = {"Authorization": f"Bearer {server.tokens[role]}"}
            answer = case.call(base_url=server.url, headers=headers, timeout=20)
            case.validate_response(answer, checks=CHECKS)

        ask()
    return len(operations)


def _read(found: Any) -> Any:  # noqa: ANN401 - schemathesis's own: an operation, or why not
    return found.ok()
