"""A question goes with the epoch that asked it, and a wait for approval with its generation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import OnFailure, Step
from tests.contract.engine.state.loops.test_loops import begin, of
from tests.contract.engine.state.verdicts.test_verifiers import do
from tests.contract.task_states import break_for_good, take

STEPS = (Step(id="plan"), Step(id="work", needs=("plan",), on_failure=OnFailure(action="ask")))


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def ask(engine: Engine, task_id: str) -> None:
    assert engine.work.ask(task_id, take(engine, task_id).token, "which?").ok


def asking(engine: Engine, how: Callable[[Engine, str], object]) -> tuple[str, str]:
    run = begin(engine, *STEPS)
    do(engine, run, "plan")
    work = of(engine, run, "work")[0].id
    how(engine, work)
    assert engine.tasks.get(work).holds
    return run, work


def cancel_and_retry(engine: Engine, run: str, _: str) -> None:
    assert engine.runs.cancel(run).ok
    assert engine.runs.retry(run).ok


def retry_from(engine: Engine, run: str, _: str) -> None:
    assert engine.runs.retry(run, step="plan").ok


def reset(engine: Engine, _: str, work: str) -> None:
    assert engine.tasks.reset(work).ok


@pytest.mark.parametrize(
    ("how", "again"),
    [
        (ask, retry_from),
        (ask, reset),
        (break_for_good, cancel_and_retry),
        (break_for_good, retry_from),
        (break_for_good, reset),
    ],
)
def test_a_task_that_begins_again_loses_its_question_and_its_wait_for_approval(
    engine: Engine,
    how: Callable[[Engine, str], object],
    again: Callable[[Engine, str, str], None],
) -> None:
    run, work = asking(engine, how)
    again(engine, run, work)
    task = engine.tasks.get(work)
    assert (task.holds, task.question) == (Hold(0), None)
    assert engine.tasks.answer(work, "red").reason is Refusal.INVALID_TRANSITION
    told = [event for event in engine.tasks.events(work) if "holds" in event.data]
    assert told[-1].type in {"task.retried", "task.reopened", "task.reset"}


def test_a_retry_goes_on_with_the_question_of_the_same_epoch(engine: Engine) -> None:
    run, work = asking(engine, ask)
    cancel_and_retry(engine, run, work)
    assert engine.tasks.get(work).question == "which?"
    assert engine.tasks.answer(work, "red").ok
    assert take(engine, work).feedback == "red"


@pytest.mark.parametrize("again", [cancel_and_retry, retry_from, reset])
def test_holds_set_by_a_person_outlast_a_new_beginning(
    engine: Engine, again: Callable[[Engine, str, str], None]
) -> None:
    run, work = asking(engine, lambda engine, work: engine.tasks.hold(work, "approval"))
    assert engine.tasks.hold(work, "question").ok
    assert engine.tasks.hold(work, "paused").ok
    again(engine, run, work)
    assert engine.tasks.get(work).holds == Hold.APPROVAL | Hold.QUESTION | Hold.PAUSED
