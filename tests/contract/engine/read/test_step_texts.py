"""Steps of workflow files: what workers are given, and what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import Assignment, Task
from holdfast.model.workflow.declarations import HttpCall, StepWork
from holdfast.model.workflow.graph import Workflow
from tests.contract.engine.state.loops.test_loops import of
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN

BUILD = """
name: build
input: {task: string, depth: {type: int, default: 2}, note: string?}
env: [HOME]
agents:
  dev: {command: [dev, "{{ prompt }}"], env: {TOKEN: "{{ secret.T }}", TASK: "{{ input.task }}"}}
  judge: {external: true}
steps:
  - id: plan
    agent: judge
    prompt: "Plan {{ input.task }} {{ input.depth }} in {{ env.HOME }}"
    outputs: {stories: [{title: string, size: int?}]}
  - id: each
    for_each: "{{ steps.plan.stories }}"
    title: "{{ item.title }}"
    steps:
      - {id: implement, agent: dev, prompt: "{{ item.title }} {{ item.size }}: {{ feedback }}"}
      - {id: verify, agent: judge, verifies: implement,
         prompt: "{{ subject.made }} by {{ steps.implement.by }} for {{ run.workflow }}"}
  - id: tell
    http: {url: "http://h/{{ run.id }}", body: {all: "{{ steps.each }}", n: "{{ attempt }}"}}
    concurrency: "host:{{ input.task }}"
  - {id: approve, approval: "Merge {{ steps.tell.id }} of {{ input.task }}?"}
"""


def read(text: str) -> Workflow:
    return read_workflow_text(text)


def begin(engine: Engine, text: str = BUILD, **given: Any) -> str:
    return engine.runs.start(NewRun(workflow=read(text), input=given or None)).id


def claim(engine: Engine, *agents: str) -> Assignment:
    (assignment,) = engine.work.claim("worker", agents=agents or ("default", "dev", "judge"))
    return assignment


def give(engine: Engine, output: object, *agents: str) -> Assignment:
    """Claim the next task, and complete it."""
    assignment = claim(engine, *agents)
    reply = engine.work.complete(assignment.task.id, assignment.token, output)
    assert reply.ok, reply
    return assignment


def only(engine: Engine, run: str, step: str) -> Task:
    (task,) = of(engine, run, step)
    return task


def prompt(assignment: Assignment) -> str | None:
    assert assignment.work is not None
    return assignment.work.prompt


def test_a_worker_is_given_every_text_rendered(engine: Engine) -> None:
    run = begin(engine, task="SSO {{ input.depth }}")
    plan = give(engine, {"stories": [{"title": "form"}]})
    assert plan.work is not None
    assert plan.work.prompt == "Plan SSO {{ input.depth }} 2 in {{ env.HOME }}"
    assert plan.work.later == {"prompt": ("Plan SSO {{ input.depth }} 2 in ", "env.HOME", "")}
    implement = give(engine, {"made": "code", "by": "me"})
    assert implement.work == StepWork(
        prompt="form null: ",
        command=("dev", "{{ prompt }}"),
        env={"TOKEN": "{{ secret.T }}", "TASK": "SSO {{ input.depth }}"},
        idle_timeout=600,
        later={"command.1": ("", "prompt", ""), "env.TOKEN": ("", "secret.T", "")},
    )
    assert prompt(give(engine, {"verdict": "accept"})) == "code by me for build"
    tell = give(engine, {"id": 7})
    assert tell.work is not None
    assert tell.work.http == HttpCall(
        url=f"http://h/{run}", body={"all": [{"made": "code", "by": "me"}], "n": 1}
    )
    assert only(engine, run, "approve").title == "Merge 7 of SSO {{ input.depth }}?"
    assert engine.tasks.approve(only(engine, run, "approve").id).ok
    assert engine.runs.get(run).status == "completed"


def test_titles_and_keys_are_told_as_soon_as_they_are_known(engine: Engine) -> None:
    run = begin(engine, task="SSO")
    assert only(engine, run, "tell").concurrency_key == "task:host:SSO"
    assert only(engine, run, "approve").title == "Merge {{ steps.tell.id }} of {{ input.task }}?"
    give(engine, {"stories": [{"title": "form"}, {"title": "page"}]})
    assert [task.title for task in of(engine, run, "each")] == ["each", "form", "page"]


def test_a_rejection_is_told_to_whoever_does_it_again(engine: Engine) -> None:
    begin(engine, task="SSO")
    give(engine, {"stories": [{"title": "form", "size": 1}]})
    assert prompt(give(engine, {"made": "code", "by": "me"})) == "form 1: "
    give(engine, {"verdict": "reject", "feedback": "{{ input.task }} no tests"})
    assert prompt(give(engine, {"made": "more", "by": "me"})) == "form 1: {{ input.task }} no tests"
    assert prompt(give(engine, {"verdict": "accept"})) == "more by me for build"


UNTOLD = """
name: w
steps:
  - {id: a, run: [x]}
  - {id: b, run: [y, "{{ steps.a.missing }}"]}
  - {id: c, run: [z]}
"""


def test_a_task_whose_texts_cannot_be_told_fails_without_an_attempt(engine: Engine) -> None:
    run = begin(engine, UNTOLD)
    give(engine, {"found": 1})
    task = only(engine, run, "b")
    assert (task.status, task.attempt, task.failures) == (Status.FAILED, 0, 0)
    assert task.error == "step 'b': there is no steps.a.missing; there is found"
    assert engine.runs.get(run).status == "failed"
    events = [event for event in engine.tasks.events(task.id) if event.type == "task.failed"]
    assert [(event.source, event.target, event.actor) for event in events] == [
        ("queued", "failed", "advance")
    ]


def test_a_step_whose_text_can_suddenly_not_be_made_is_given_to_no_claim(
    engine: Engine, store_url: str, clock: ManualClock
) -> None:
    begin(engine, UNTOLD)
    given = give(engine, {"missing": "m"})
    change = "UPDATE holdfast_task SET output = ? WHERE id = ?"
    with raw(store_url) as run:
        run(change, "{}", given.task.id)
        assert engine.work.claim("worker") == []
        run(change, '{"missing":"m"}', given.task.id)
    clock.advance(engine.settings.lease + 1)
    engine.work.recover()
    assert claim(engine).attempt == 2


def test_a_step_whose_text_could_not_be_made_is_claimed_after_its_need_was_done_again(
    engine: Engine,
) -> None:
    run = begin(engine, UNTOLD)
    give(engine, {"found": 1})
    assert engine.runs.retry(run, step="a").ok
    give(engine, {"missing": "m"})
    work = claim(engine).work
    assert work is not None
    assert work.command == ("y", "m")


def test_a_title_is_told_anew_after_what_it_names_was_done_again(engine: Engine) -> None:
    text = """
name: w
steps:
  - {id: a, run: [x]}
  - {id: b, run: [y], title: "Ship {{ steps.a.size }}"}
  - {id: c, for_each: "{{ steps.a.all }}", title: "Item {{ item }}", steps: [{id: d, run: [z]}]}
"""
    run = begin(engine, text)
    titles = ["Ship {{ steps.a.size }}", "c"]

    def told() -> list[str]:
        return [only(engine, run, step).title for step in ("b", "c")]

    for size in (3, 4):
        assert told() == titles
        give(engine, {"size": size, "all": []})
        assert told() == [f"Ship {size}", "c"]
        give(engine, {})
        assert engine.runs.retry(run, step="a").ok
    assert told() == titles


def test_a_verifier_whose_subject_came_back_without_what_it_names_fails(engine: Engine) -> None:
    text = """
name: w
steps:
  - {id: a, run: [x]}
  - {id: v, run: [y, "{{ subject.commit }}"], verifies: a}
"""
    run = begin(engine, text)
    give(engine, {"commit": "c1"})
    give(engine, {"verdict": "reject", "feedback": "no"})
    give(engine, {})
    task = only(engine, run, "v")
    assert (task.status, task.attempt) == (Status.FAILED, 1)
    assert task.error == "step 'v': there is no subject.commit; there is nothing"


def test_outputs_of_a_skipped_step_are_null_in_texts(engine: Engine) -> None:
    text = """
name: w
steps:
  - {id: a, run: [x], when: input.go, outputs: {n: int}}
  - {id: b, run: [y, "{{ steps.a.n }}", "{{ steps.a }}"], env: {N: "{{ steps.a.n }}"}}
"""
    begin(engine, text, go=False)
    work = claim(engine).work
    assert work is not None
    assert (work.command, work.env) == (("y", "null", "null"), {"N": "null"})


def test_nested_items_see_their_own_item_and_the_steps_around_them(engine: Engine) -> None:
    text = """
name: w
steps:
  - {id: top, run: [x]}
  - id: outer
    for_each: "{{ input.rows }}"
    steps:
      - {id: row, run: [r, "{{ item.name }}"]}
      - id: inner
        for_each: "{{ item.cells }}"
        parallel: 9
        steps:
          - {id: cell, run: [c, "{{ item }}", "{{ steps.row.made }}", "{{ steps.top.made }}"]}
"""
    rows = [{"name": "A", "cells": [1, 2]}, {"name": "B", "cells": [3]}]
    begin(engine, text, rows=rows)
    seen = []
    while taken := engine.work.claim("worker", count=9):
        for each in taken:
            assert each.work is not None
            assert each.work.command is not None
            seen.append(" ".join(each.work.command))
            made = {"made": f"<{' '.join(each.work.command[:2])}>"}
            assert engine.work.complete(each.task.id, each.token, made).ok
    assert seen == ["x", "r A", "c 1 <r A> <x>", "c 2 <r A> <x>", "r B", "c 3 <r B> <x>"]


def test_runs_of_one_rendered_key_go_one_after_another(engine: Engine) -> None:
    text = """
name: w
concurrency: {key: "repo:{{ input.repo }}", limit: 1}
steps: [{id: a, run: [x, "{{ input.repo }}"]}]
"""
    first, second, other = (begin(engine, text, repo=repo) for repo in ("r1", "r1", "r2"))
    assert engine.runs.get(first).concurrency_key == "run:repo:r1"
    assert engine.runs.get(second).holds.names == ("slot",)
    taken = engine.work.claim("worker", count=9)
    assert {each.task.run_id for each in taken} == {first, other}
    with pytest.raises(InvalidInput, match="concurrency key"):
        begin(engine, text.replace(', "{{ input.repo }}"', ""), x=1)


def test_python_steps_are_given_no_work(engine: Engine) -> None:
    engine.runs.start(NewRun(workflow=CHAIN))
    assert claim(engine).work is None
