"""The errors of attempts, as people are told of them."""

from __future__ import annotations

import pytest

from holdfast.errors import in_words


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"rounds": 1, "feedback": "no"}, "rejected 1 time, last: no"),
        (
            {"rounds": 2, "feedback": {"why": "zu früh", "again": True}},
            'rejected 2 times, last: {"why": "zu früh", "again": true}',
        ),
        ("cancelled", "cancelled"),
        ([None, 1], "[null, 1]"),
    ],
)
def test_what_was_said_is_told_as_it_was_said_and_not_as_python_writes_it(
    error: object, told: str
) -> None:
    assert in_words(error) == told
