"""Landings: items with lines of their own are merged in their order, and go back on a conflict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import TransitionResult
from holdfast.model.status import Status
from holdfast.model.task import Assignment, Task
from holdfast.model.workflow.line import Draft, Head, NewHead
from tests.contract.engine.read.test_step_texts import begin
from tests.contract.engine.state.test_lines import BASE, A, B, C, D, commit, opened

FLOW = """
name: loop
workspace: {git: "https://h/shop.git"}
agents: {dev: {external: true}}
steps:
  - {id: plan, agent: dev}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 3
    steps:
      - {id: write, agent: dev, prompt: "{{ feedback }}"}
      - {id: check, agent: dev, verifies: write}
  - {id: tell, agent: dev, prompt: "{{ steps.build }}"}
"""
E = "e" * 40


def planned(engine: Engine, *stories: str) -> str:
    run = begin(engine, FLOW)
    (plan,) = engine.work.claim("me", agents=["dev"])
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=list(stories)).ok
    return run


def at(engine: Engine, run: str, address: str) -> Task:
    return engine.runs.task(run, address)


def take(engine: Engine, run: str, address: str) -> Assignment:
    agents = ["dev", "default"]
    (held,) = engine.work.claim_by_id(at(engine, run, address).id, "me", agents=agents)
    return held


def finish(engine: Engine, run: str, item: int, sha: str) -> None:
    """Write an item, and have it accepted."""
    assert commit(engine, take(engine, run, f"build.{item}.write"), sha).ok
    check = take(engine, run, f"build.{item}.check")
    assert engine.work.complete(check.task_id, check.token, {"verdict": "accept"}).ok


def land(engine: Engine, run: str, item: int, sha: str) -> None:
    held = take(engine, run, f"build.{item}.build:land")
    around = opened(engine, held).around
    assert around is not None
    new = NewHead(line=around.line, number=around.number, base=around.sha, sha=sha)
    given: dict[str, Any] = {"commit": sha}
    assert engine.work.complete(held.task_id, held.token, given, commit=new).ok


def test_items_land_in_their_order_whichever_is_done_first(engine: Engine) -> None:
    run = planned(engine, "one", "two", "three")
    for item, sha in ((3, B), (2, C)):
        finish(engine, run, item, sha)
        assert at(engine, run, f"build.{item}.build:land").state == "blocked"
    finish(engine, run, 1, D)
    assert at(engine, run, "build.1.build:land").state == "ready"
    assert at(engine, run, "build.2.build:land").state == "blocked"
    for item, sha in ((1, "1" * 40), (2, "2" * 40), (3, "3" * 40)):
        land(engine, run, item, sha)
    tell = take(engine, run, "tell")
    assert tell.work is not None
    assert tell.work.prompt == str([{"commit": D}, {"commit": C}, {"commit": B}]).replace(
        "'", '"'
    ).replace(" ", "")
    line = opened(engine, tell)
    assert (line.head, line.number) == ("3" * 40, 4)
    assert engine.work.complete(tell.task_id, tell.token).ok
    assert engine.runs.get(run).status == "completed"
    assert engine.doctor().ok


def test_items_that_start_later_land_after_those_before_them(engine: Engine) -> None:
    run = planned(engine, *map(str, range(1, 6)))
    for item in range(1, 4):
        finish(engine, run, item, B)
    land(engine, run, 1, "1" * 40)
    land(engine, run, 2, "2" * 40)
    finish(engine, run, 5, C)
    finish(engine, run, 4, D)
    assert at(engine, run, "build.5.build:land").state == "blocked"
    land(engine, run, 3, "3" * 40)
    assert opened(engine, take(engine, run, "build.4.build:land")).around == Head(
        line=run, number=4, sha="3" * 40
    )


def test_a_conflict_sends_its_item_back_to_begin_anew_at_the_head_around_it(
    engine: Engine,
) -> None:
    run = planned(engine, "one", "two")
    finish(engine, run, 2, C)
    finish(engine, run, 1, B)
    land(engine, run, 1, D)
    held = take(engine, run, "build.2.build:land")
    line = opened(engine, held)
    assert (line.head, line.base) == (C, A)
    told = "it conflicts with the items before it in shop.py"
    left = Draft(base=A, sha=C)
    failed = engine.work.fail(held.task_id, held.token, told, retryable=False, left=left, anew=True)
    assert failed.ok
    assert at(engine, run, "build.2.build:land").state == "blocked"
    again = take(engine, run, "build.2.write")
    assert again.work is not None
    assert again.work.prompt is not None
    assert told in again.work.prompt
    anew = opened(engine, again)
    assert (anew.base, anew.head, anew.number) == (D, D, 2)
    assert anew.id == line.id != run
    assert commit(engine, again, E).ok
    check = take(engine, run, "build.2.check")
    assert engine.work.complete(check.task_id, check.token, {"verdict": "accept"}).ok
    land(engine, run, 2, "2" * 40)
    assert at(engine, run, "build").status is Status.DONE
    assert at(engine, run, "build.1.write").attempt == 1
    assert engine.doctor().ok


def conflict(engine: Engine, run: str, clock: ManualClock) -> None:
    """Let the only item meet a conflict in every round that it has."""
    for _ in range(4):
        clock.advance(1)
        finish(engine, run, 1, B)
        held = take(engine, run, "build.1.build:land")
        told = "a conflict in shop.py"
        assert engine.work.fail(held.task_id, held.token, told, retryable=False, anew=True).ok
    assert at(engine, run, "build.1.build:land").status is Status.FAILED
    assert engine.runs.get(run).status == "failed"


AGAIN: dict[str, Callable[[Engine, str, str], TransitionResult]] = {
    "run": lambda engine, run, _: engine.runs.retry(run),
    "task": lambda engine, _, landing: engine.tasks.retry(landing),
    "step": lambda engine, run, _: engine.runs.retry(run, step="build.1.build:land"),
    "reopen": lambda engine, _, landing: engine.tasks.reopen(landing),
    "reset": lambda engine, _, landing: engine.tasks.reset(landing),
}


@pytest.mark.parametrize("way", AGAIN)
def test_an_item_that_conflicted_too_often_begins_again_with_its_landing(
    engine: Engine, clock: ManualClock, way: str
) -> None:
    run = planned(engine, "one")
    conflict(engine, run, clock)
    landing = at(engine, run, "build.1.build:land").id
    assert AGAIN[way](engine, run, landing).ok
    assert at(engine, run, "build.1.build:land").state in {"blocked", "idle"}
    again = take(engine, run, "build.1.write")
    assert again.work is not None
    assert again.work.prompt is not None
    assert "a conflict in shop.py" in again.work.prompt
    line = opened(engine, again)
    assert line.around is not None
    assert line.base == line.head == line.around.sha == A
    assert commit(engine, again, E).ok
    check = take(engine, run, "build.1.check")
    assert engine.work.complete(check.task_id, check.token, {"verdict": "accept"}).ok
    if way == "reset":
        assert engine.tasks.enqueue(landing).ok
    land(engine, run, 1, D)
    assert at(engine, run, "build").status is Status.DONE
    assert engine.doctor().ok


def test_a_landing_that_failed_without_a_conflict_is_retried_alone(
    engine: Engine, clock: ManualClock
) -> None:
    run = planned(engine, "one")
    for _ in range(4):
        clock.advance(1)
        finish(engine, run, 1, B)
        held = take(engine, run, "build.1.build:land")
        assert engine.work.fail(held.task_id, held.token, "no git", retryable=False).ok
    assert engine.runs.retry(run).ok
    assert at(engine, run, "build.1.write").status is Status.DONE
    land(engine, run, 1, D)
    assert at(engine, run, "build").status is Status.DONE
