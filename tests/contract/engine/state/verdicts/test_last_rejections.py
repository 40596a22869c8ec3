"""What a verifier of a loop rejected with its last round is begun again, and nothing else of it."""

from __future__ import annotations

import json

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import OnFailure, Step
from tests.contract.engine.state.loops.test_loops import begin, of, ready
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, current, judge, loop
from tests.contract.raw_store import raw
from tests.contract.task_states import finish, take

ASK = OnFailure(action="ask")
BACK = OnFailure(action="goto", step="plan", max_rounds=1)
SECOND = {"verdict": "reject", "feedback": "the second is bad", "items": [1]}


def rejected(engine: Engine, on_failure: OnFailure, said: object = SECOND) -> str:
    """A run whose verifier has rejected items of a loop with its last round."""
    run = begin(
        engine,
        Step(id="plan"),
        loop((Step(id="make"),), parallel=3, needs=("plan",)),
        Step(id="verify", verifies="build", max_rounds=1, on_failure=on_failure),
        given=["a", "b", "c"],
    )
    make_all(engine, run)
    assert judge(engine, run, said).ok
    return run


def make_all(engine: Engine, run: str) -> None:
    finish(engine, current(engine, run, "plan").id)
    for place in range(3):
        finish(engine, current(engine, run, "make", place).id, f"made {place}")


def begin_again(engine: Engine, run: str, way: str) -> None:
    verify = current(engine, run, "verify").id
    if way == "approve":
        assert engine.tasks.approve(verify).ok
        return
    if way == "cancel and retry":
        assert engine.runs.cancel(run).ok
    elif way == "reject and retry":
        assert engine.tasks.reject(verify).ok
    elif way == "reject with a word and retry":
        assert engine.tasks.reject(verify, "not this way").ok
    assert engine.runs.retry(run).ok


@pytest.mark.parametrize(
    "way",
    [
        "retry",
        "approve",
        "cancel and retry",
        "reject and retry",
        "reject with a word and retry",
    ],
)
def test_only_the_items_that_a_verifier_named_begin_again(engine: Engine, way: str) -> None:
    run = rejected(engine, OnFailure() if way == "retry" else ASK)
    begin_again(engine, run, way)
    assert ready(engine, run) == ["make 1"]
    again = finish(engine, current(engine, run, "make", 1).id, "made better")
    assert again.feedback == "the second is bad"
    assert current(engine, run, "build").output == ["made 0", "made better", "made 2"]
    assert judge(engine, run, ACCEPT).ok
    assert engine.runs.get(run).status == "completed"
    diagnosis = engine.doctor()
    assert diagnosis.ok, str(diagnosis)


@pytest.mark.parametrize("way", ["retry", "approve"])
def test_a_rejection_that_names_no_item_begins_all_items_again(engine: Engine, way: str) -> None:
    said = {"verdict": "reject", "feedback": "none will do"}
    run = rejected(engine, OnFailure() if way == "retry" else ASK, said)
    begin_again(engine, run, way)
    assert ready(engine, run) == ["make 0", "make 1", "make 2"]


@pytest.mark.parametrize("way", ["retry", "approve"])
def test_a_rejection_written_by_an_earlier_release_begins_all_items_again(
    engine: Engine, store_url: str, way: str
) -> None:
    run = rejected(engine, OnFailure() if way == "retry" else ASK)
    verify = current(engine, run, "verify").id
    error = json.dumps({"rounds": 1, "feedback": "the second is bad"})
    with raw(store_url) as run_sql:
        run_sql("UPDATE holdfast_task SET error = ? WHERE id = ?", error, verify)
    begin_again(engine, run, way)
    assert ready(engine, run) == ["make 0", "make 1", "make 2"]
    assert take(engine, current(engine, run, "make", 2).id).feedback == "the second is bad"


def test_the_places_of_a_list_that_is_over_mean_nothing_in_the_next(engine: Engine) -> None:
    run = rejected(engine, ASK)
    assert engine.tasks.unblock(current(engine, run, "verify").id).ok
    assert engine.runs.retry(run, step="build").ok
    for place in range(3):
        finish(engine, current(engine, run, "make", place).id, f"made {place} anew")
    begin_again(engine, run, "approve")
    assert "make 0" in ready(engine, run)
    assert "make 2" in ready(engine, run)


def test_each_approval_brings_back_what_was_named_last(engine: Engine) -> None:
    run = rejected(engine, ASK)
    begin_again(engine, run, "approve")
    finish(engine, current(engine, run, "make", 1).id)
    assert judge(engine, run, {**SECOND, "feedback": "now the others", "items": [0, 2]}).ok
    begin_again(engine, run, "approve")
    assert ready(engine, run) == ["make 0", "make 2"]
    assert take(engine, current(engine, run, "make", 0).id).feedback == "now the others"


def test_a_verifier_that_goes_back_begins_all_items_again_and_names_items_when_that_is_used_up(
    engine: Engine,
) -> None:
    run = rejected(engine, BACK)
    assert ready(engine, run) == ["plan None"]
    make_all(engine, run)
    assert judge(engine, run, {**SECOND, "items": [2]}).ok
    assert engine.runs.get(run).status == "failed"
    begin_again(engine, run, "retry")
    assert ready(engine, run) == ["make 2"]
    assert [task.epoch for task in of(engine, run, "plan")] == [2]
