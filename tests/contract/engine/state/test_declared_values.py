"""What steps of workflow files are given and give, against what they declare."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from tests.contract.engine.read.test_step_texts import BUILD, begin, claim, give, only, read


def test_an_attempt_that_gives_something_else_than_declared_has_failed(engine: Engine) -> None:
    run = begin(engine, task="SSO")
    taken = claim(engine)
    reply = engine.work.complete(taken.task.id, taken.token, {"stories": [{"name": "form"}]})
    assert (reply.ok, reply.reason) == (False, Refusal.INVALID_OUTPUT)
    assert reply.detail == "output.stories[0].title is missing"
    task = only(engine, run, "plan")
    assert (task.status, task.failures, task.output) == (Status.QUEUED, 1, None)
    assert task.error == "output.stories[0].title is missing"
    assert [each.outcome for each in engine.tasks.attempts(task.id)] == ["failed"]


@pytest.mark.parametrize(
    ("plan", "ends"),
    [("fail", "failed"), ("skip", "completed"), ("ask", "running"), ("{goto: make}", "running")],
)
def test_a_repeated_invalid_output_gets_the_same_answer_and_another_output_a_conflict(
    engine: Engine, plan: str, ends: str
) -> None:
    step = f"{{id: a, run: [x], max_attempts: 1, outputs: {{n: int}}, on_failure: {plan}}}"
    run = begin(engine, f"{{name: w, steps: [{{id: make, run: [y]}}, {step}]}}")
    made = claim(engine)
    assert engine.work.complete(made.task.id, made.token).ok
    taken = claim(engine)
    first = engine.work.complete(taken.task.id, taken.token, {"n": "x"})
    assert (first.ok, first.reason) == (False, Refusal.INVALID_OUTPUT)
    assert engine.work.complete(taken.task.id, taken.token, {"n": "x"}) == first
    for output in ({"n": "y"}, {"n": 1}):
        reply = engine.work.complete(taken.task.id, taken.token, output)
        assert (reply.ok, reply.reason) == (False, Refusal.RESULT_CONFLICT)
    assert engine.runs.get(run).status == ends


def test_an_output_after_a_failure_is_a_conflict_though_it_would_not_fit_either(
    engine: Engine,
) -> None:
    begin(engine, "{name: w, steps: [{id: a, run: [x], outputs: {n: int}}]}")
    taken = claim(engine)
    assert engine.work.fail(taken.task.id, taken.token, "red").ok
    reply = engine.work.complete(taken.task.id, taken.token, "red")
    assert (reply.ok, reply.reason) == (False, Refusal.RESULT_CONFLICT)


def test_reports_of_one_group_are_each_checked_on_their_own(engine: Engine) -> None:
    step = "  - {id: NAME, run: [x], needs: [], outputs: {n: int}}\n"
    run = begin(engine, "name: w\nsteps:\n" + "".join(step.replace("NAME", n) for n in "abc"))
    taken = engine.work.claim("worker", count=3)
    given = ({"n": 1}, {"n": "x"}, {"n": 3, "more": True})
    futures = [
        engine.work.complete.submit(each.task.id, each.token, output)
        for each, output in zip(taken, given, strict=True)
    ]
    assert [future.result().ok for future in futures] == [True, False, True]
    assert [task.status.value for task in engine.runs.tasks(run)] == ["done", "queued", "done"]


def test_a_stale_attempt_is_refused_whatever_it_gives(engine: Engine) -> None:
    begin(engine, task="SSO")
    first = claim(engine)
    assert engine.work.release(first.task.id, first.token).ok
    second = claim(engine)
    outputs: tuple[object, ...] = ({"stories": []}, {"stories": "no"})
    for output in outputs:
        reply = engine.work.complete(first.task.id, first.token, output)
        assert reply.reason is Refusal.STALE_TOKEN
    assert engine.work.complete(second.task.id, second.token, {"stories": []}).ok
    assert engine.work.complete(second.task.id, second.token, {"stories": []}).repeated


def test_a_verifier_has_to_give_its_verdict_and_what_it_declares(engine: Engine) -> None:
    text = """
name: w
steps:
  - {id: a, run: [x]}
  - {id: v, run: [y], verifies: a, outputs: {score: int}}
"""
    run = begin(engine, text)
    give(engine, {})
    task = only(engine, run, "v")
    for output, detail in (
        ({"verdict": "accept"}, "output.score is missing"),
        ({"score": 1}, "a verifier's output must hold `verdict`"),
    ):
        (taken,) = engine.work.claim_by_id(task.id, "worker")
        reply = engine.work.complete(task.id, taken.token, output)
        assert reply.reason is Refusal.INVALID_OUTPUT
        assert detail in reply.detail
        engine.tasks.run_now(task.id)
    give(engine, {"verdict": "reject", "score": 2})
    give(engine, {})
    give(engine, {"verdict": "accept", "score": 3})
    assert engine.runs.get(run).status == "completed"


def test_input_that_does_not_fit_is_refused_by_its_field(engine: Engine) -> None:
    refused: dict[str, dict[str, Any]] = {
        "input.task": {"task": 5},
        "input.depth": {"task": "x", "depth": "deep"},
        "input.dpeth": {"task": "x", "dpeth": 3},
    }
    for field, given in refused.items():
        with pytest.raises(InvalidInput) as error:
            begin(engine, **given)
        assert error.value.field == field
    with pytest.raises(InvalidInput, match=r"input\.task: is missing"):
        begin(engine)
    assert engine.runs.list() == []


def test_input_is_kept_with_its_defaults_and_its_key_is_for_that_body(engine: Engine) -> None:
    flow = read(BUILD)
    first = engine.runs.start(NewRun(workflow=flow, input={"task": "x"}, key="k"))
    again = engine.runs.start(NewRun(workflow=flow, input={"task": "x", "depth": 2}, key="k"))
    assert (again.id, again.created) == (first.id, False)
    assert engine.runs.get(first.id).input == {"task": "x", "depth": 2, "note": None}


def test_without_declared_input_what_texts_name_must_be_there_at_the_start(engine: Engine) -> None:
    text = "{name: w, steps: [{id: a, run: ['{{ input.x.y }}']}]}"
    with pytest.raises(InvalidInput, match=r"input.x.y: step 'a' uses it"):
        begin(engine, text, x={})
    with pytest.raises(InvalidInput, match="input: must be an object, not list"):
        engine.runs.start(NewRun(workflow=read(text), input=[1]))
    begin(engine, text, x={"y": 1})
    work = claim(engine).work
    assert work is not None
    assert work.command == ("1",)
