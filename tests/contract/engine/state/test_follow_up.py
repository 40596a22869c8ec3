"""Continue: an ended task is done again with a message, and what needs it is done after it."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.task_states import start


def claim(engine: Engine) -> Assignment:
    (got,) = engine.work.claim("w")
    return got


def test_a_continued_task_runs_again_with_the_message_and_its_dependents_follow(
    engine: Engine,
) -> None:
    run = start(engine, Workflow.define("two", (Step(id="one"), Step(id="two", needs=("one",)))))
    for output in ("first", "second"):
        done = claim(engine)
        assert engine.work.complete(done.task_id, done.token, output).ok
    assert engine.runs.get(run.id).status == "completed"
    assert engine.tasks.follow_up(run.steps["one"], "also the docs", actor="ada").ok
    assert engine.runs.get(run.id).status == "running"
    again = claim(engine)
    assert (again.task_id, again.feedback, again.attempt) == (run.steps["one"], "also the docs", 2)
    assert engine.work.claim("w") == []
    assert engine.tasks.events(again.task_id)[-2].actor == "ada"
    assert engine.work.complete(again.task_id, again.token, "better").ok
    after = claim(engine)
    assert (after.task_id, after.feedback) == (run.steps["two"], None)
    assert engine.doctor().ok


def test_tasks_that_have_not_ended_and_plans_are_not_continued(engine: Engine) -> None:
    task = engine.tasks.create(NewTask(title="t")).id
    assert engine.tasks.follow_up(task, "go on").reason is Refusal.INVALID_TRANSITION
    plan = engine.tasks.create(NewTask(title="p", plan=True)).id
    assert engine.tasks.cancel(plan).ok
    refused = engine.tasks.follow_up(plan, "go on")
    assert (refused.reason, "below it" in refused.detail) == (Refusal.INVALID_TRANSITION, True)
    assert engine.tasks.follow_up("t_" + "0" * 20, "go on").reason is Refusal.NOT_FOUND
    with pytest.raises(InvalidInput):
        engine.tasks.follow_up(task, None)
    assert engine.doctor().ok
