"""JSON as it is kept: one text for each value."""

from __future__ import annotations

import json
import time

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


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m, \x9b2Kgone", "red, gone"),
        ("\x1b]0;title\x07\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1b7\x1bMtext\x1b=", "text"),
        ("[31m and \x1b] without an end", "[31m and \x1b] without an end"),
        ("plain\r\n\ttext", "plain\r\n\ttext"),
    ],
)
def test_codes_of_a_terminal_are_left_out_of_a_text(written: str, plain: str) -> None:
    assert text.strip_terminal_codes(written) == plain


def test_codes_are_looked_for_in_a_moment() -> None:
    begun = time.process_time()
    for each in ("\x1b[" + "0" * 500_000, "\x1b[0" * 200_000, "\x1b]x" * 200_000, "\x9b" * 500_000):
        text.strip_terminal_codes(each)
    assert time.process_time() - begun < 2
