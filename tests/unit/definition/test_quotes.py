"""Quotes: what a hint says to write is read as the text that was meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.definition.command_text import suggest_list
from holdfast.definition.findings import Findings
from holdfast.definition.nodes import plain_value
from holdfast.definition.quotes import quote_word
from holdfast.definition.text_file import read_nodes

SHOWN = st.characters(min_codepoint=32, max_codepoint=126)


def read_list(text: str) -> object:
    findings = Findings("x.yaml", text)
    node = read_nodes(text, findings)
    assert node is not None
    assert not findings
    return plain_value(node)


@given(st.lists(st.text(SHOWN | st.sampled_from("-:0.")), min_size=1))
def test_words_in_the_list_of_a_hint_are_read_as_they_are(words: list[str]) -> None:
    assert read_list(f"[{', '.join(map(quote_word, words))}]") == words


@given(st.text(SHOWN, min_size=1).filter(lambda text: text.strip() and "{{" not in text))
def test_a_hint_for_a_command_is_a_list_that_can_be_read(text: str) -> None:
    hint = suggest_list(text)
    assert isinstance(read_list(hint.removeprefix("write ")), list)
