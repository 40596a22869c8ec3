"""How an answer is read out of what a command wrote, and what is said of one that is wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from holdfast.model.verdict import VERDICT_SCHEMA
from holdfast.worker.steps.command_answer import (
    MOST_TEXT,
    CommandAnswer,
    GivenAnswer,
    add_contract,
    make_repair_prompt,
    read_answer,
)

LIMIT = 1_000_000
DECLARED = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "due-date": {"type": "string"},
    },
    "required": ["title"],
}


def read(
    written: str | bytes = b"", *, file: bytes | None = None, declared: bool = False
) -> CommandAnswer:
    data = written.encode() if isinstance(written, str) else written
    outputs = DECLARED if declared else None
    return read_answer(GivenAnswer(file=file, written=data), outputs, limit=LIMIT)


@pytest.mark.parametrize(
    ("written", "output"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1}\n{"a": 2}\nDone.\n', {"a": 2}),
        ('before\n{"a": {"b": []}}\r\n', {"a": {"b": []}}),
        ('```json\n{\n  "a": {\n    "b": 1\n  }\n}\n```\n', {"a": {"b": 1}}),
        ('{"a": 1}\n[1, 2]\n"text"\n', {"a": 1}),
        ('{"a": 1}\n{"a": NaN}\n{broken\n', {"a": 1}),
        ('{"question": "a", "more": 1}', {"question": "a", "more": 1}),
        (b'\xff\xfe\n{"a": "\xc3\xb6"}\n\x00', {"a": "ö"}),
    ],
)
def test_the_last_object_counts(written: str | bytes, output: object) -> None:
    assert read(written) == CommandAnswer(output=output)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("", ""),
        ("One line.\n", "One line."),
        ("STATUS: done\n\nCHANGED: [1, 2]\n", "STATUS: done\n\nCHANGED: [1, 2]"),
        ("10 %\r 50 %\r100 %\r\ndone\r\n", "100 %\ndone"),
        ("\x1b[1;32mgreen\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07\x00\x07", "green link"),
        (b"\xff\xfe", "��"),
    ],
)
def test_plain_text_is_kept_as_it_stands_on_a_screen(written: str | bytes, text: str) -> None:
    assert read(written) == CommandAnswer(output={"text": text})


def test_of_a_long_text_the_end_is_kept_and_says_where_the_rest_is() -> None:
    kept = read("a" * MOST_TEXT + "the end").output["text"]
    assert len(kept) == MOST_TEXT + 1
    assert kept.startswith("[holdfast: what came before is in the log]\naaa")
    assert kept.endswith("aaathe end")
    answered = GivenAnswer(file=None, written=b'"' * 1_000)
    assert len(read_answer(answered, None, limit=800).output["text"]) == 101


def test_plain_text_is_an_answer_where_a_text_is_declared_and_nothing_else_is_asked() -> None:
    declared: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
    answered = GivenAnswer(file=None, written=b"It is ready.\n")
    assert read_answer(answered, declared, limit=LIMIT).output == {"text": "It is ready."}
    more = declared | {"required": ["text", "score"]}
    assert "no JSON object" in read_answer(answered, more, limit=LIMIT).mistakes[0]


def test_the_file_counts_before_what_was_written() -> None:
    assert read('{"a": 1}', file=b'\xef\xbb\xbf{"a":\n2}\n').output == {"a": 2}
    assert read('{"a": 1}', file=b"\n").output == {"a": 1}


def test_keys_that_are_declared_are_found_in_any_spelling_and_have_their_type() -> None:
    written = "Title: 12 \t\r\nCOUNT: 3\ndue_date: 1 May\nINFO: more\n"
    assert read(written, declared=True).output == {"title": "12", "count": 3, "due-date": "1 May"}


def test_a_question_is_one_unless_it_is_declared() -> None:
    assert read('{"question": {"which": [1]}}') == CommandAnswer(question={"which": [1]})
    declared: dict[str, Any] = {"properties": {"question": {}}}
    answered = GivenAnswer(file=None, written=b'{"question": "q"}')
    assert read_answer(answered, declared, limit=LIMIT) == CommandAnswer(output={"question": "q"})


@pytest.mark.parametrize("outputs", [{"type": "object"}, {"properties": {"question": {}}}])
def test_the_examples_at_the_end_of_a_prompt_are_no_answer(outputs: dict[str, Any]) -> None:
    prompt = add_contract("Do it", outputs)

    def read_written(written: str, *, file: bytes | None = None) -> CommandAnswer:
        given = GivenAnswer(file=file, written=written.encode())
        return read_answer(given, outputs, limit=LIMIT, asked=prompt)

    example = prompt.splitlines()[-1]
    assert "no JSON object" in read_written(prompt).mistakes[0]
    assert "an example of the prompt" in read_written("", file=example.encode()).mistakes[0]
    assert read_written('{"a": 1}\n' + prompt.replace("\n", "\r\n")).output == {"a": 1}
    assert read_written(prompt + '{"question": "Which?"}') != read_written(prompt)
    unasked = GivenAnswer(file=None, written=example.encode())
    assert read_answer(unasked, outputs, limit=LIMIT).mistakes == ()


def test_a_verifier_without_a_verdict_is_told_its_form() -> None:
    answered = GivenAnswer(file=None, written=b"looks fine to me")
    (told,) = read_answer(answered, VERDICT_SCHEMA, limit=LIMIT).mistakes
    form = ': a verifier gives {"verdict": "accept"} or {"verdict": "reject", "feedback": "…"}'
    assert told.endswith(form)


@pytest.mark.parametrize(
    ("written", "file", "mistake"),
    [
        ("nothing", None, "there is no JSON object in it, in a line of its own"),
        ('{"count": 1}', None, "the output.title is missing"),
        ('{"title": "a", "count": "b"}', None, "the output.count must be a whole number"),
        ('{"title": "\\u0000"}', None, "contains a NUL character"),
        ('{"title": "\\ud800"}', None, "contains a lone surrogate"),
        ("", b"{", "names is not JSON: "),
        ("", b"\xff{}", "names is not JSON: "),
        ("", b"[]", "holds no JSON object"),
        ("", b" " * (LIMIT + 1), "holds more than 1000000 bytes"),
        (json.dumps({"title": "x" * LIMIT}), None, "at most 1000000 are kept"),
        ("", b"[" * 100_000, "names is not JSON: "),
        ('{"question": "\\u0000"}', None, "the question: contains a NUL character"),
        (json.dumps({"question": "x" * 100_000}), None, "the question: is 100002 bytes of JSON"),
    ],
)
def test_a_mistake_in_an_answer_is_told(written: str, file: bytes | None, mistake: str) -> None:
    (told,) = read(written, file=file, declared=True).mistakes
    assert mistake in told


@pytest.mark.parametrize(
    "hostile",
    [
        *("{" * 1_000_000, "{\n" * 500_000, '{"a":\n' * 200_000, "[" * 1_000_000),
        *("A: " * 300_000, "A: x" + " " * 300_000 + "x", " " * 1_000_000),
    ],
)
def test_hostile_text_is_read_in_a_moment(hostile: str) -> None:
    begun = time.process_time()
    assert read(hostile).mistakes == ()
    assert time.process_time() - begun < 2


def test_a_prompt_ends_with_the_form_of_the_answer_where_one_is_declared() -> None:
    assert add_contract("Do it\n", None) == "Do it\n"
    asked = add_contract("Do it\n", DECLARED)
    assert asked.startswith("Do it\n\nEnd your answer with a JSON object in one line")
    assert json.dumps(DECLARED) in asked
    assert '{"question": ' in asked


def test_a_repair_tells_what_was_asked_what_was_answered_and_what_is_wrong() -> None:
    again = make_repair_prompt(
        "Do it", GivenAnswer(file=None, written=b"I did \xff"), ("it is bad", "and late")
    )
    assert again.startswith("Do it\n\nYou have answered this before:\n\nI did �\n\n")
    assert "\n- it is bad\n- and late\n" in again
