"""How often a step may go back: as often as it says, and anew when a person begins it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import OnFailure, Step
from tests.contract.engine.state.loops.test_loops import begin, of, ready
from tests.contract.engine.state.verdicts.test_verifiers import do
from tests.contract.task_states import break_for_good, finish

BACK = OnFailure(action="goto", step="plan", max_rounds=1)


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def step(engine: Engine, run: str, name: str) -> str:
    return of(engine, run, name)[0].id


def fail_for_good(engine: Engine, run: str) -> int:
    """Let the second step fail until it goes back no more; how often it did."""
    rounds = 0
    while True:
        if ready(engine, run) == ["plan None"]:
            finish(engine, step(engine, run, "plan"))
        break_for_good(engine, step(engine, run, "test"))
        if engine.runs.get(run).status == "failed":
            return rounds
        rounds += 1


@pytest.mark.parametrize(
    "again",
    [
        lambda engine, run: engine.runs.retry(run),
        lambda engine, run: engine.runs.retry(run, step="plan"),
        lambda engine, run: engine.tasks.reopen(step(engine, run, "test")),
        lambda engine, run: engine.tasks.reset(step(engine, run, "test")),
    ],
    ids=["retry", "retry from", "re-open", "reset"],
)
def test_a_step_begun_again_by_a_person_may_go_back_as_often_as_at_first(
    engine: Engine, again: Callable[[Engine, str], object]
) -> None:
    run = begin(engine, Step(id="plan"), Step(id="test", needs=("plan",), on_failure=BACK))
    assert fail_for_good(engine, run) == 1
    again(engine, run)
    assert fail_for_good(engine, run) == 1


def test_two_steps_that_take_each_other_back_come_to_an_end(engine: Engine) -> None:
    run = begin(
        engine,
        Step(id="plan"),
        Step(id="test", needs=("plan",), on_failure=BACK),
        Step(id="ship", needs=("test",), on_failure=BACK),
    )
    do(engine, run, "plan")
    break_for_good(engine, step(engine, run, "test"))
    do(engine, run, "plan", "test")
    break_for_good(engine, step(engine, run, "ship"))
    do(engine, run, "plan")
    assert engine.runs.get(run).status == "running"
    break_for_good(engine, step(engine, run, "test"))
    assert engine.runs.get(run).status == "failed"
