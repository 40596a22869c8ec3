"""Lines of JSON in the log, and what they are about."""

from __future__ import annotations

import json
import logging
from contextvars import Context
from typing import Any

from holdfast.logs import JsonLogFormatter, set_log_subject


class Attempt:
    about = {"run": None, "task": "t_1", "attempt": 2}  # noqa: RUF012 - never changed

    def __str__(self) -> str:
        return "attempt 2"


def line(message: str, *args: object, error: Exception | None = None) -> dict[str, Any]:
    raised = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("holdfast.worker", logging.WARNING, "", 0, message, args, raised)
    record.created = 1.5
    return dict(json.loads(JsonLogFormatter().format(record)))


def test_a_line_is_about_the_attempt_that_it_names() -> None:
    assert line("%s ended\n", Attempt()) == {
        "at": "1970-01-01T00:00:01.500000Z",
        "level": "warning",
        "logger": "holdfast.worker",
        "message": "attempt 2 ended\n",
        "task": "t_1",
        "attempt": 2,
    }


def test_a_line_that_names_none_is_about_the_one_it_was_logged_in() -> None:
    def dig() -> dict[str, object]:
        set_log_subject(Attempt())
        return line("digging %d", 3)

    outside = Context()
    told = outside.copy().run(dig)
    assert (told["task"], told["attempt"]) == ("t_1", 2)
    assert "task" not in outside.run(line, "nothing")


def test_an_error_that_was_raised_is_told_with_its_traceback() -> None:
    told = line("it failed", error=ValueError("a stone"))
    assert told["error"].endswith("ValueError: a stone")
