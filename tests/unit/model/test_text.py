"""JSON as it is kept: one text for each value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.model import text

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
WORDS = st.text(LETTERS, max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS
FINITE = SCALARS.filter(lambda value: value not in {float("inf"), -float("inf")})
VALUES = st.recursive(
    FINITE, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4)
)


@given(VALUES)
def test_a_value_is_read_again_as_it_was_given_and_has_one_text(value: object) -> None:
    kept = text.encode_json("field", value, limit=1_000_000)
    assert json.loads(kept) == value
    plain = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert kept == plain


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(InvalidInput, match="nested"):
        text.encode_json("field", value, limit=100)
