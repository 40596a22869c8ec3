"""Texts that no worker could be given are refused as soon as what makes them is known."""

from __future__ import annotations

import threading

import pytest

from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import Engine
from holdfast.engine.read import step_texts
from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.step_template import render_work
from holdfast.model.workflow.template import MAX_RENDERED, Variables

LONG = "x" * (MAX_RENDERED // 2)


def begin(engine: Engine, step: str, **given: str) -> str:
    text = f"name: w\ninput: {{x: string?}}\nsteps:\n  - {{id: a, run: [a]}}\n  - {step}\n"
    return engine.runs.start(NewRun(workflow=read_workflow_text(text), input=given)).id


@pytest.mark.parametrize(
    ("step", "value", "reason"),
    [
        ('{id: b, run: ["{{ input.x }}{{ input.x }}{{ input.x }}"]}', LONG, "longer than"),
        ('{id: b, run: [b], concurrency: "{{ input.x }}{{ input.x }}!"}', LONG, "longer than"),
        ('{id: b, http: "http://h/{{ input.x }}/keep"}', "..", "leads elsewhere"),
    ],
)
def test_a_run_is_not_started_with_an_input_that_no_text_could_be_made_of(
    engine: Engine, step: str, value: str, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=f"input: step 'b' uses it, and .*{reason}"):
        begin(engine, step, x=value)
    assert list(engine.runs.list()) == []


@pytest.mark.parametrize(
    ("step", "value", "reason"),
    [
        ('{id: b, run: ["{{ steps.a.x }}{{ steps.a.x }}{{ steps.a.x }}"]}', LONG, "longer than"),
        ('{id: b, http: "http://h/{{ steps.a.x }}/keep"}', "..", "leads elsewhere"),
    ],
)
def test_a_step_fails_without_an_attempt_when_no_text_can_be_made_of_what_another_gave(
    engine: Engine, step: str, value: str, reason: str
) -> None:
    run = begin(engine, step)
    (first,) = engine.work.claim("worker")
    assert engine.work.complete(first.task_id, first.token, {"x": value}).ok
    failed = next(task for task in engine.runs.tasks(run) if task.step == "b")
    assert (failed.status, failed.attempt) == ("failed", 0)
    assert reason in str(failed.error)


def test_texts_of_a_claimed_step_are_rendered_by_the_claimer_and_not_by_the_writer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def note(work: StepWork, scope: Variables) -> StepWork:
        made.append(threading.current_thread().name)
        return render_work(work, scope)

    monkeypatch.setattr(step_texts, "render_work", note)
    begin(engine, "{id: b, needs: [], run: [b]}")
    assert len(engine.work.claim("worker")) == 1
    reply = engine.work.claim.submit("worker")
    assert [each.step for each in reply.result()] == ["b"]
    assert reply.result() is reply.result()
    assert made == [threading.current_thread().name] * 2
