"""Tokens are secrets: nothing that is printed or logged shows them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from holdfast.model.task import Assignment, NamedLease, Renewal


@pytest.mark.parametrize("kind", [Assignment, NamedLease, Renewal])
def test_a_record_with_a_token_does_not_show_it(kind: type) -> None:
    record = kind(**{each.name: f"the {each.name}" for each in fields(kind)})
    assert record.token == "the token"
    assert "the token" not in repr(record)
