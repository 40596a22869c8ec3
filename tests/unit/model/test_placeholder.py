"""Placeholders: words that stand for a value are refused as a value, and others are not."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidInput
from holdfast.model.placeholder import refuse_placeholder


@pytest.mark.parametrize("value", ["<answer>", "<title>"])
def test_a_word_of_advice_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        refuse_placeholder("answer", value)
    told = f"answer: {value!r} only stands for the answer; write the answer itself"
    assert str(refused.value) == told


@pytest.mark.parametrize("value", ["…", "...", "<…>", "[PAYLOAD]", "[…]"])
def test_a_mark_of_help_is_refused_where_a_person_types_it_and_is_data_elsewhere(
    value: str,
) -> None:
    refuse_placeholder("payload", value)
    with pytest.raises(InvalidInput, match="only stands for the payload"):
        refuse_placeholder("payload", value, typed=True)


@pytest.mark.parametrize(
    "value", ["", "TEXT", "N", "answer", "<b>", "yes…", "[x]", None, 5, ["…"], {"a": "…"}]
)
def test_what_somebody_may_mean_is_taken(value: object) -> None:
    refuse_placeholder("answer", value, typed=True)
