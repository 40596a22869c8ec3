"""Rejected approvals that go back to a step, with the reason and the comments as feedback."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.status import Status
from tests.contract.engine.read.test_step_texts import begin, claim, give, only

FLOW = """
name: w
agents: {dev: {external: true}}
steps:
  - {id: build, agent: dev, prompt: "Build. {{ feedback }}"}
  - {id: test, agent: dev}
  - {id: approve, approval: "Merge {{ steps.build.made }}?",
     on_failure: {goto: build, max_rounds: 2}}
  - {id: merge, agent: dev}
"""
COMMENTS: list[dict[str, Any]] = [
    {"file": "src/a.py", "line": 3, "text": "Why?"},
    {"file": "b.md", "text": "Say more"},
]


def built(engine: Engine, run: str, made: str) -> str:
    give(engine, {"made": made})
    give(engine, {})
    approve = only(engine, run, "approve")
    assert approve.title == f"Merge {made}?"
    return approve.id


def test_a_rejected_approval_goes_back_with_the_reason_and_the_comments(engine: Engine) -> None:
    run = begin(engine, FLOW)
    approve = built(engine, run, "one")
    answer = engine.tasks.reject(approve, "not yet", comments=COMMENTS)
    assert (answer.ok, answer.status) == (True, "queued")
    assert "goes back to build" in answer.detail
    task = engine.tasks.get(approve)
    assert (task.status, task.state, task.generation) == (Status.QUEUED, "blocked", 2)
    again = claim(engine)
    assert again.step == "build"
    assert again.feedback == {"reason": "not yet", "comments": COMMENTS}
    assert again.work is not None
    assert again.work.prompt == "Build. not yet\nsrc/a.py:3: Why?\nb.md: Say more"
    assert engine.work.complete(again.task_id, again.token, {"made": "two"}).ok
    give(engine, {})
    assert only(engine, run, "approve").title == "Merge two?"
    assert engine.tasks.approve(approve).ok
    give(engine, {})
    assert engine.runs.get(run).status == "completed"


def test_an_approval_that_was_rejected_too_often_fails(engine: Engine) -> None:
    run = begin(engine, FLOW)
    for made in ("one", "two"):
        assert engine.tasks.reject(built(engine, run, made)).status == "queued"
    approve = built(engine, run, "three")
    assert engine.tasks.reject(approve, "no", comments=COMMENTS).status == "failed"
    assert engine.tasks.get(approve).error == {"reason": "no", "comments": COMMENTS}
    assert engine.runs.get(run).status == "failed"
    assert engine.runs.retry(run).ok
    assert engine.tasks.approve(approve).ok


def test_an_approval_is_neither_approved_nor_sent_back_while_it_is_blocked(engine: Engine) -> None:
    run = begin(engine, FLOW)
    approve = only(engine, run, "approve").id
    for settle in (engine.tasks.approve, engine.tasks.reject):
        refused = settle(approve, "now")
        assert refused.reason is Refusal.INVALID_TRANSITION
    assert only(engine, run, "build").generation == 1
    built(engine, run, "one")
    assert engine.runs.pause(run).ok
    assert engine.tasks.reject(approve).reason is Refusal.INVALID_TRANSITION
    assert only(engine, run, "build").generation == 1


def test_a_rejection_that_comes_twice_goes_back_once(engine: Engine) -> None:
    run = begin(engine, FLOW)
    approve = built(engine, run, "one")
    assert engine.tasks.reject(approve, "no").ok
    assert engine.tasks.reject(approve, "no").reason is Refusal.INVALID_TRANSITION
    assert only(engine, run, "build").generation == 2


def test_a_step_is_done_again_with_comments(engine: Engine) -> None:
    run = begin(engine, FLOW)
    built(engine, run, "one")
    build = only(engine, run, "build").id
    assert engine.tasks.follow_up(build, comments=COMMENTS).ok
    assert claim(engine).feedback == {"reason": None, "comments": COMMENTS}
    with pytest.raises(InvalidInput, match="message"):
        engine.tasks.follow_up(build)


@pytest.mark.parametrize(
    ("comment", "field"),
    [
        ("a.py:3: why", "comments.0"),
        ({"file": "a.py"}, "comments.0.text"),
        ({"text": "why"}, "comments.0.file"),
        ({"file": "a.py", "line": 0, "text": "why"}, "comments.0.line"),
        ({"file": "a.py", "text": "why", "colour": "red"}, "comments.0"),
    ],
)
def test_a_comment_names_a_file_and_says_something(
    engine: Engine,
    comment: Any,  # noqa: ANN401 - JSON is any value
    field: str,
) -> None:
    run = begin(engine, FLOW)
    approve = built(engine, run, "one")
    with pytest.raises(InvalidInput) as caught:
        engine.tasks.reject(approve, "no", comments=[comment])
    assert caught.value.field == field
    assert engine.tasks.get(approve).generation == 1
