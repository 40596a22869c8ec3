"""What was said of work: the nearest word counts, nothing said hides none, a reset forgets it."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Step
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.engine.state.verdicts.test_verifiers import REJECT, current, do, judge
from tests.contract.task_states import take

SILENT = {"verdict": "reject"}
BODY = (Step(id="implement"), Step(id="verify", verifies="implement"))


def judged(engine: Engine) -> str:
    """A run with an item that was sent back with a word."""
    run = begin(engine, loop("input", body=BODY), Step(id="check", verifies="build"), given=["a"])
    do(engine, run, "implement")
    assert judge(engine, run, {"verdict": "accept"}).ok
    assert judge(engine, run, REJECT, step="check").ok
    return run


def test_a_rejection_without_a_word_hides_none_that_was_said_of_the_item(engine: Engine) -> None:
    run = judged(engine)
    do(engine, run, "implement")
    assert judge(engine, run, SILENT).ok
    assert take(engine, current(engine, run, "implement").id).feedback == "too long"


def test_an_answer_of_nothing_hides_no_word_that_was_said_of_the_item(engine: Engine) -> None:
    run = judged(engine)
    attempt = take(engine, current(engine, run, "implement").id)
    assert engine.work.ask(attempt.task.id, attempt.token, "which?").ok
    assert engine.tasks.answer(attempt.task.id, None).ok
    again = take(engine, attempt.task.id)
    assert (again.feedback, again.own_feedback) == ("too long", None)


def test_a_reset_task_begins_without_earlier_feedback_or_answers(engine: Engine) -> None:
    run = judged(engine)
    assert engine.tasks.reset(current(engine, run, "build", 1).id).ok
    attempt = take(engine, current(engine, run, "implement").id)
    assert attempt.feedback is None
    assert engine.work.ask(attempt.task.id, attempt.token, "which?").ok
    assert engine.tasks.answer(attempt.task.id, "this").ok
    assert engine.tasks.get(attempt.task.id).feedback == "this"
    assert engine.tasks.reset(attempt.task.id).ok
    assert take(engine, attempt.task.id).feedback is None
