"""Mistakes in the shape of what was sent: where, what was given, and what to write."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from holdfast.service.commands import request_bodies
from holdfast.service.commands.request_errors import translate_errors

EITHER = request_bodies.NewTaskBody | request_bodies.NewTasksBody


@pytest.mark.parametrize(
    ("shape", "sent", "told"),
    [
        (request_bodies.ClaimBody, {}, ["worker: is missing"]),
        (request_bodies.ClaimBody, None, ["body: must be an object, not null"]),
        (request_bodies.ClaimBody, [1], ["body: must be an object, not a list"]),
        (
            request_bodies.ClaimBody,
            {"worker": "w", "max": 0, "wait_seconds": 1e9, "agents": "x"},
            [
                "agents: must be a list, not 'x'",
                "max: must be 1 or more, not 0",
                "wait_seconds: must be 120 at most, not 1000000000.0",
            ],
        ),
        (
            request_bodies.ClaimBody,
            {"worker": "w", "agnets": []},
            ["agnets: is no field of this; did you mean 'agents'?"],
        ),
        (
            request_bodies.AttemptBody,
            {"token": "t", "q": 1},
            ["q: is no field of this; there are agents, worker"],
        ),
        (request_bodies.AttemptBody, {"token": 5_123}, ["token: must be text, not a whole number"]),
        (request_bodies.AnswerBody, {}, ["answer: is missing"]),
        (EITHER, {"title": 1}, ["title: must be text, not 1"]),
        (EITHER, {"tasks": [{"title": "x", "foo": 1}]}, ["tasks.0.foo: is no field of this"]),
        (EITHER, {"tasks": 1}, ["tasks: must be a list, not 1"]),
        (
            request_bodies.NewTaskBody,
            {"title": "x", "scheduled_for": [1]},
            ["scheduled_for: must be text or a whole number, not a list"],
        ),
        (
            request_bodies.ArtifactBody,
            {"token": "t", "name": "n", "content": "c", "encoding": "zip"},
            ["encoding: must be 'text' or 'base64', not 'zip'"],
        ),
        (
            request_bodies.ReorderPlanBody,
            {"order": ["x"] * 10_001},
            ["order: must be 10000 entries long at most, not 10001"],
        ),
    ],
)
def test_a_mistake_tells_where_it_is_what_was_given_and_what_to_write(
    shape: Any,  # noqa: ANN401 - a class, or several
    sent: object,
    told: list[str],
) -> None:
    with pytest.raises(ValidationError) as found:
        TypeAdapter(shape).validate_python(sent)
    errors = [{**each, "loc": ("body", *each["loc"])} for each in found.value.errors()]
    said = [str(each) for each in translate_errors(errors, ("agents", "worker"))]
    assert said == told


def test_a_long_text_is_told_in_short_and_a_strange_one_in_ascii() -> None:
    found = {"type": "int_type", "loc": ("body", "n"), "msg": "", "input": "\u202e" + "x" * 99}
    (told,) = translate_errors([found])
    assert told.message == "must be a whole number, not '\\u202exxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"


def test_a_mistake_without_words_of_ours_is_told_in_the_words_it_came_with() -> None:
    found = {"type": "odd", "loc": ("query", "n"), "msg": "Input should be odd", "input": 2}
    (told,) = translate_errors([found])
    assert str(told) == "n: must be right (Input should be odd), not 2"
