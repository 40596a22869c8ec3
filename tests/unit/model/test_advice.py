"""Texts that hold advice: plain text for programs, which keeps its advice as data."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy

import pytest

from holdfast.errors import InvalidInput, KeyConflict, NotFound, StoreError
from holdfast.model.advice import (
    Action,
    Advice,
    AdviceText,
    advice_of,
    advise,
    join_texts,
    message_of,
    parts_of,
    read_stored,
)

RETRY = Advice(Action.RETRY, "t_1")
TEXT = "it has failed; " + advise(Action.RETRY, "t_1") + " tries it again"


def test_a_text_is_the_plain_text_that_a_program_reads() -> None:
    assert TEXT == 'it has failed; hf.tasks.retry("t_1") tries it again'
    assert json.dumps([TEXT]) == json.dumps([str(TEXT)])
    assert type(str(TEXT)) is str


def test_a_text_keeps_its_parts_when_it_is_put_together_with_others() -> None:
    parts = ("it has failed; ", RETRY, " tries it again")
    assert (parts_of(TEXT), advice_of(TEXT)) == (parts, (RETRY,))
    assert parts_of("a: " + TEXT + ", b") == ("a: it has failed; ", RETRY, " tries it again, b")
    assert parts_of(AdviceText("", TEXT, "")) == parts
    assert advice_of(join_texts(" or ", [TEXT, "nothing", TEXT])) == (RETRY, RETRY)


def test_plain_texts_hold_no_advice() -> None:
    assert (parts_of("plain"), advice_of("plain")) == (("plain",), ())
    assert type(join_texts("; ", ["one", "two"])) is str


@pytest.mark.parametrize("again", [deepcopy, lambda text: pickle.loads(pickle.dumps(text))])  # noqa: S301 - written here
def test_a_text_that_is_copied_or_pickled_keeps_its_parts(again: object) -> None:
    assert callable(again)
    assert parts_of(again(TEXT)) == parts_of(TEXT)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("field", TEXT),
        NotFound("t_1", hint=TEXT),
        KeyConflict("key", "t_1", TEXT),
        StoreError(TEXT),
    ],
)
def test_an_error_keeps_the_advice_of_its_message(error: InvalidInput) -> None:
    assert advice_of(message_of(error)) == (RETRY,)
    assert message_of(error) == str(error)
    assert type(str(error)) is str
    assert advice_of(message_of(pickle.loads(pickle.dumps(error)))) == (RETRY,)  # noqa: S301


def test_the_message_of_an_error_without_advice_is_its_text() -> None:
    assert message_of(InvalidInput("field", "is missing")) == "field: is missing"
    assert message_of(StoreError()) == ""


@pytest.mark.parametrize(
    "text",
    [
        "broken",
        'hf.tasks.retry("r_1")',
        "hf.tasks.retry(task)",
        'hf.tasks.unheard_of("t_1")',
        'hf.tasks.retry("t_1", times="2")',
        "print(hf.why(handle))",
    ],
)
def test_a_stored_text_without_advice_to_the_letter_stays_as_it_is(text: str) -> None:
    assert read_stored(text) is text
