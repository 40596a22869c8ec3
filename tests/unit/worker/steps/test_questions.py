"""What steps that are no Python functions have asked, and were answered."""

from __future__ import annotations

import pytest

from holdfast.model.frozen_record import make_record
from holdfast.model.task import Assignment
from holdfast.worker.steps.step_resources import read_questions


@pytest.mark.parametrize("answer", ["this", None])
def test_an_answer_is_what_was_said_to_the_task_itself(answer: str | None) -> None:
    about = {"feedback": answer or "said of the item", "own_feedback": answer}
    asked = {"question 0001": {"question": "which?", "feedback": "said of the item"}}
    found = read_questions(make_record(Assignment, about), asked)
    assert found.answers == [("which?", answer)]


def test_before_a_question_all_that_was_said_is_kept() -> None:
    about = {"feedback": "said of the item", "own_feedback": None}
    asking = read_questions(make_record(Assignment, about), {}).suspend_for("which?")
    note = {"question": "which?", "feedback": "said of the item"}
    assert asking.notes == (("question 0001", note),)
