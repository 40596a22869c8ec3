"""A called run that has ended: what is told of who called it, and typing that takes it up again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.workflow.graph import OnFailure, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import advised, fixes_of
from tests.contract.called_workflows import LAST, SHIP, begin, call, child, in_items, of
from tests.contract.task_states import StartedRun, break_for_good, finish

ASK = OnFailure(action="ask")
SKIP = OnFailure(action="skip")
VERBS: dict[str, Callable[[StartedRun], TransitionResult]] = {
    "retry": lambda run: run.engine.runs.retry(run.id),
    "retry task": lambda run: run.engine.tasks.retry(run.steps["send"]),
    "retry from": lambda run: run.engine.runs.retry(run.id, step="send"),
    "reopen": lambda run: run.engine.tasks.reopen(run.steps["send"]),
    "reset": lambda run: run.engine.tasks.reset(run.steps["send"]),
}
AROUND = Workflow.define("around", (call(), LAST))


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def broken(run: StartedRun) -> StartedRun:
    """What a step has called, which fails with its second step."""
    shipping = of(run)
    shipping.finish("pack")
    shipping.break_for_good("send")
    return shipping


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_retry_of_a_called_run_says_that_its_caller_waits_for_approval(
    engine: Engine, verb: str
) -> None:
    run = begin(engine, call(on_failure=ASK), LAST)
    shipping = broken(run)
    answer = VERBS[verb](shipping)
    approve = Advice(Action.APPROVE, run.steps["ship"])
    assert (answer.ok, answer.reason) == (False, Refusal.PART_OF_RUN)
    assert advised(answer) == [approve]
    assert fixes_of(engine.why_run(shipping.id)) == [approve]
    assert fixes_of(engine.why(shipping.steps["send"])) == [approve]
    assert engine.tasks.approve(run.steps["ship"]).ok
    assert (of(run).id, shipping.statuses) == (shipping.id, {"pack": "done", "send": "queued"})


def test_a_step_behind_a_failed_step_of_a_called_run_is_given_the_same_fix(engine: Engine) -> None:
    run = begin(engine, call(on_failure=ASK), LAST)
    shipping = of(run)
    shipping.break_for_good("pack")
    approve = Advice(Action.APPROVE, run.steps["ship"])
    assert fixes_of(engine.why(shipping.steps["send"])) == [approve]


def test_retry_takes_up_what_was_called_by_a_step_that_a_person_has_rejected(
    engine: Engine,
) -> None:
    run = begin(engine, call(on_failure=ASK), LAST)
    shipping = broken(run)
    assert engine.tasks.reject(run.steps["ship"], "too late").ok
    assert fixes_of(engine.why_run(shipping.id)) == [Advice(Action.RETRY, shipping.id)]
    assert engine.runs.retry(shipping.id).ok
    assert (of(run).id, shipping.statuses) == (shipping.id, {"pack": "done", "send": "queued"})


def test_a_called_run_that_ended_with_its_caller_goes_on_by_a_retry_of_the_caller(
    engine: Engine,
) -> None:
    run = begin(engine, call(), LAST)
    shipping = broken(run)
    answer = engine.tasks.reopen(shipping.steps["send"])
    assert advised(answer) == [Advice(Action.RETRY, run.id)]
    assert fixes_of(engine.why(shipping.steps["send"])) == [
        Advice(Action.RETRY, shipping.steps["send"])
    ]
    assert engine.runs.retry(run.id).ok
    assert shipping.statuses == {"pack": "done", "send": "queued"}


@pytest.mark.parametrize("verb", VERBS)
def test_the_call_of_an_item_that_was_skipped_is_named_by_an_address_that_leads_there(
    engine: Engine, verb: str
) -> None:
    over = Reference.parse("for_each", "input")
    steps = (call(on_failure=SKIP), Step(id="gate", needs=("ship",)))
    run = begin(engine, Step(id="build", for_each=over, steps=steps), given=["a", "b"])
    first = in_items(run, "ship")[0]
    shipping = child(engine, first)
    shipping.finish("pack")
    shipping.break_for_good("send")
    answer = VERBS[verb](shipping)
    assert answer.reason is Refusal.PART_OF_RUN
    again = Advice(Action.RETRY, run.id, (("step", "build.1.ship"),))
    assert advised(answer) == [again]
    assert fixes_of(engine.why_run(shipping.id)) == [again]
    assert fixes_of(engine.why(shipping.steps["send"])) == [again]
    assert engine.runs.retry(run.id, step="build.1.ship").ok
    assert child(engine, first).id != shipping.id
    assert child(engine, first).status == "running"


def test_the_way_out_of_a_run_below_a_run_leads_through_the_one_that_asks(engine: Engine) -> None:
    engine.workflows.add(SHIP)
    run = begin(engine, call(workflow=AROUND, on_failure=ASK), LAST, workflow=AROUND)
    middle = of(run)
    shipping = broken(middle)
    assert (middle.status, run.states["ship"]) == ("failed", "held")
    approve = Advice(Action.APPROVE, run.steps["ship"])
    answer = engine.runs.retry(shipping.id)
    assert answer.reason is Refusal.PART_OF_RUN
    assert advised(answer) == [approve]
    assert fixes_of(engine.why_run(shipping.id)) == [approve]
    assert engine.tasks.approve(run.steps["ship"]).ok
    assert shipping.statuses == {"pack": "done", "send": "queued"}


def test_the_way_out_below_a_run_that_has_ended_leads_through_who_called_that(
    engine: Engine,
) -> None:
    around = Workflow.define("left", (call(on_failure=SKIP), LAST))
    engine.workflows.add(SHIP)
    run = begin(engine, call(workflow=around), LAST, workflow=around)
    middle = of(run)
    shipping = broken(middle)
    middle.finish("tell")
    assert middle.status == "completed"
    again = Advice(Action.RETRY, run.id, (("step", "ship"),))
    answer = engine.runs.retry(shipping.id)
    assert (answer.reason, advised(answer)) == (Refusal.PART_OF_RUN, [again])
    assert fixes_of(engine.why_run(shipping.id)) == [again]
    assert engine.runs.retry(run.id, step="ship").ok


def test_a_run_called_before_its_caller_began_anew_is_not_retried(
    engine: Engine,
) -> None:
    back = OnFailure(action="goto", step="plan", max_rounds=1)
    run = begin(engine, Step(id="plan"), call(needs=("plan",), on_failure=back), LAST)
    run.finish("plan")
    shipping = broken(run)
    look = Advice(Action.WHY, run.steps["ship"])
    answer = engine.runs.retry(shipping.id)
    assert (answer.reason, advised(answer)) == (Refusal.PART_OF_RUN, [look])
    assert fixes_of(engine.why_run(shipping.id)) == [look]


def test_a_run_called_in_an_epoch_that_is_over_is_not_retried_and_has_no_fix(
    engine: Engine,
) -> None:
    over = Reference.parse("for_each", "input")
    run = begin(engine, Step(id="build", for_each=over, steps=(call(on_failure=SKIP),)), given=[1])
    first = in_items(run, "ship")[0]
    shipping = child(engine, first)
    break_for_good(engine, shipping.steps["pack"])
    assert engine.runs.retry(run.id, step="build").ok
    answer = engine.runs.retry(shipping.id)
    assert (answer.reason, advised(answer)) == (Refusal.PART_OF_RUN, [])
    assert fixes_of(engine.why_run(shipping.id)) == []


def test_a_caller_that_waits_for_something_else_has_not_gone_on_yet(engine: Engine) -> None:
    run = begin(engine, Step(id="plan"), call(needs=("plan",)))
    run.finish("plan")
    shipping = of(run)
    for verb in ("pause", "cancel", "retry"):
        assert getattr(engine.runs, verb)(run.id).ok
    look = Advice(Action.WHY, run.steps["ship"])
    answer = engine.runs.retry(shipping.id)
    assert (answer.reason, advised(answer)) == (Refusal.PART_OF_RUN, [look])
    assert engine.runs.resume(run.id).ok
    finish(engine, shipping.steps["pack"])
