"""Answers are JSON, whatever they hold, and what a server loads is looked at by no collector."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.http_server import COLLECTOR_THRESHOLD, collect_less_often


def nested(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    "content",
    [
        {"text": "é", "number": 10**30, "float": 1e22, "nothing": None, "list": (1, 2)},
        {"text": "half of a pair: \ud800"},
        nested(400),
    ],
)
def test_an_answer_is_json_whatever_it_quotes(content: object) -> None:
    sent = bytes(JsonAnswer(content).body)
    assert json.loads(sent) == json.loads(json.dumps(content))


@pytest.mark.parametrize("beside", ["é", "half of a pair: \ud800"])
def test_a_number_that_json_does_not_have_is_null(beside: str) -> None:
    numbers = [float("inf"), float("-inf"), float("nan"), 1.5]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    sent = bytes(JsonAnswer({"numbers": numbers, "beside": beside}).body)
    told = json.loads(sent, parse_constant=refuse)
    assert told == {"numbers": [None, None, None, 1.5], "beside": beside}


def test_the_collector_comes_less_often_unless_it_was_told_otherwise() -> None:
    before = gc.get_threshold()
    try:
        for youngest, then in ((700, COLLECTOR_THRESHOLD), (0, 0), (10**6, 10**6)):
            gc.set_threshold(youngest, 10, 10)
            collect_less_often()
            assert gc.get_threshold()[0] == then
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
