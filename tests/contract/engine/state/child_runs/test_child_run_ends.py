"""How a step and the run that it calls end together: failure, retry, cancel, a new beginning."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.result import Refusal
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import OnFailure, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import advised
from tests.contract.called_workflows import LAST, begin, below, call, child, get, in_items, of
from tests.contract.task_states import finish


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def test_the_failure_of_a_run_is_that_of_the_step_that_called_it(engine: Engine) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    shipping.break_for_good("pack")
    assert (shipping.status, run.task("ship").status, run.status) == ("failed",) * 3
    assert (get(run).error, run.task("ship").error) == ("broken", "broken")
    assert run.states["tell"] == "stalled"


def test_a_called_run_that_is_cancelled_alone_fails_its_step(engine: Engine) -> None:
    run = begin(engine, call(), LAST)
    assert engine.runs.cancel(of(run).id).ok
    assert run.task("ship").error == "its run was cancelled"
    assert run.status == "failed"


def test_a_step_may_be_skipped_when_its_run_fails(engine: Engine) -> None:
    run = begin(engine, call(on_failure=OnFailure(action="skip")), LAST)
    of(run).break_for_good("pack")
    assert (run.task("ship").skipped, run.task("ship").output) == (True, None)
    run.finish("tell")
    assert run.status == "completed"


def test_a_person_who_is_asked_lets_the_same_run_go_on(engine: Engine) -> None:
    run = begin(engine, call(on_failure=OnFailure(action="ask")), LAST)
    shipping = of(run)
    shipping.break_for_good("pack")
    assert (run.states["ship"], shipping.status, run.status) == ("held", "failed", "running")
    assert engine.tasks.approve(run.steps["ship"]).ok
    assert (of(run).id, shipping.status) == (shipping.id, "running")
    shipping.finish("pack", "send")
    assert run.task("ship").status == "done"


def test_a_person_who_is_asked_may_say_no(engine: Engine) -> None:
    run = begin(engine, call(on_failure=OnFailure(action="ask")), LAST)
    of(run).break_for_good("pack")
    assert engine.tasks.reject(run.steps["ship"], "too late").ok
    assert (run.task("ship").error, run.status) == ("too late", "failed")


def test_a_step_goes_back_and_calls_anew_until_its_rounds_are_used_up(engine: Engine) -> None:
    back = OnFailure(action="goto", step="plan", max_rounds=1)
    run = begin(engine, Step(id="plan"), call(needs=("plan",), on_failure=back), LAST)
    run.finish("plan")
    first = of(run)
    first.break_for_good("pack")
    assert run.states == {"plan": "ready", "ship": "blocked", "tell": "blocked"}
    assert run.engine.runs.get(run.id).status == "running"
    run.finish("plan")
    second = of(run)
    assert second.id != first.id
    second.break_for_good("pack")
    assert (run.task("ship").status, run.status) == ("failed", "failed")


def test_retry_takes_up_the_run_that_failed(engine: Engine) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    shipping.finish("pack")
    shipping.break_for_good("send")
    assert engine.runs.retry(run.id).ok
    assert (of(run).id, shipping.statuses) == (shipping.id, {"pack": "done", "send": "queued"})
    assert run.status == "running"
    shipping.finish("send")
    run.finish("tell")
    assert run.status == "completed"


def test_a_called_run_is_not_left_paused_when_its_caller_resumes_after_a_retry(
    engine: Engine,
) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    for verb in ("pause", "cancel", "retry"):
        assert getattr(engine.runs, verb)(run.id).ok
    assert (run.states["ship"], shipping.status) == ("held", "cancelled")
    assert engine.runs.resume(run.id).ok
    assert (shipping.status, shipping.holds, shipping.states["pack"]) == ("running", [], "ready")


@pytest.mark.parametrize("what", ["run", "task"])
def test_retry_of_what_was_called_is_retry_of_who_called_it(engine: Engine, what: str) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    shipping.break_for_good("pack")
    answer = (
        engine.runs.retry(shipping.id)
        if what == "run"
        else engine.tasks.retry(shipping.steps["pack"])
    )
    assert (answer.ok, answer.status) == (True, "running" if what == "run" else "queued")
    assert (run.status, shipping.status) == ("running", "running")


@pytest.mark.parametrize("verb", ["retry", "retry from", "reopen", "reset"])
def test_a_called_run_stays_ended_once_its_caller_has_gone_on(engine: Engine, verb: str) -> None:
    run = begin(engine, call(on_failure=OnFailure(action="skip")), LAST)
    shipping = of(run)
    shipping.break_for_good("pack")
    answer = {
        "retry": lambda: engine.runs.retry(shipping.id),
        "retry from": lambda: engine.runs.retry(shipping.id, step="pack"),
        "reopen": lambda: engine.tasks.reopen(shipping.steps["pack"]),
        "reset": lambda: engine.tasks.reset(shipping.steps["pack"]),
    }[verb]()
    assert answer.reason is Refusal.PART_OF_RUN
    assert advised(answer) == [Advice(Action.RETRY, run.id, (("step", "ship"),))]
    assert shipping.status == "failed"


def test_a_step_of_what_was_called_begins_again_in_its_own_run(engine: Engine) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    answer = engine.runs.retry(run.id, step="ship.pack")
    assert answer.reason is Refusal.PART_OF_RUN
    assert advised(answer) == [Advice(Action.RETRY, shipping.id, (("step", "pack"),))]


def test_cancel_of_a_run_cancels_all_that_it_has_called(engine: Engine) -> None:
    outer = Workflow.define("outer", (call("inner"),))
    engine.workflows.add(outer)
    run = begin(engine, call(workflow=outer), LAST)
    middle = of(run)
    inner = of(middle, "inner")
    attempt = inner.take("pack")
    assert engine.runs.cancel(run.id).ok
    assert {each.status for each in (run, middle, inner)} == {"cancelled"}
    assert inner.statuses == {"pack": "cancelled", "send": "cancelled"}
    late = engine.work.complete(attempt.task_id, attempt.token, "late")
    assert late.reason is Refusal.ALREADY_TERMINAL
    assert engine.runs.retry(run.id).ok
    assert {each.status for each in (run, middle, inner)} == {"running"}
    assert inner.statuses == {"pack": "queued", "send": "queued"}


@pytest.mark.parametrize("verb", ["cancel", "reset"])
def test_cancel_and_reset_of_a_call_cancel_its_run(engine: Engine, verb: str) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    assert getattr(engine.tasks, verb)(run.steps["ship"]).ok
    assert shipping.status == "cancelled"
    assert run.status == ("failed" if verb == "cancel" else "running")


def test_a_step_that_is_begun_again_calls_anew_and_cancels_what_it_had_called(
    engine: Engine,
) -> None:
    run = begin(engine, Step(id="plan"), call(needs=("plan",)), LAST)
    run.finish("plan")
    first = of(run)
    assert engine.runs.retry(run.id, step="plan").ok
    assert (first.status, run.states["ship"]) == ("cancelled", "blocked")
    run.finish("plan")
    second = of(run)
    second.finish("pack", "send")
    assert engine.runs.retry(run.id, step="ship").ok
    assert (second.status, of(run).status) == ("completed", "running")
    assert len({first.id, second.id, of(run).id}) == 3


def test_items_of_an_epoch_that_is_over_take_their_runs_with_them(engine: Engine) -> None:
    over = Reference.parse("for_each", "input")
    loop = Step(id="all", for_each=over, parallel=2, steps=(call(),))
    run = begin(engine, loop, given=["a", "b"])
    first = [child(engine, task) for task in in_items(run, "ship")]
    assert engine.runs.retry(run.id, step="all").ok
    assert [each.status for each in first] == ["cancelled", "cancelled"]
    assert sum(each.status == "running" for each in below(run)) == 2


def test_a_failing_run_ends_when_what_it_has_called_has_ended(engine: Engine) -> None:
    run = begin(engine, Step(id="plan"), call(), LAST)
    shipping = of(run)
    run.break_for_good("plan")
    assert (run.status, run.holds, shipping.holds) == ("running", ["failing"], [])
    shipping.finish("pack", "send")
    assert (run.status, run.task("ship").status) == ("failed", "done")


@pytest.mark.parametrize("action", [OnFailure(), OnFailure(action="ask")])
def test_a_call_that_gave_what_does_not_fit_is_called_anew(
    engine: Engine, action: OnFailure
) -> None:
    declared = {"type": "object", "properties": {"url": {"type": "string"}}}
    work = StepWork(workflow="shipping", outputs=declared)
    run = begin(engine, Step(id="ship", work=work, on_failure=action), LAST)
    first = of(run)
    first.finish("pack", "send")
    again = (
        engine.runs.retry(run.id)
        if action.action == "fail"
        else engine.tasks.approve(run.steps["ship"])
    )
    assert again.ok
    second = of(run)
    assert (first.status, second.status, second.id != first.id) == ("completed", "running", True)
    second.finish("pack")
    finish(engine, second.steps["send"], {"url": "here"})
    run.finish("tell")
    assert run.status == "completed"


@pytest.mark.parametrize("ended", ["well", "badly"])
@pytest.mark.parametrize("freed", ["done", "unblocked"])
def test_a_step_hears_of_the_end_of_its_run_once_it_has_all_it_needs(
    engine: Engine, freed: str, ended: str
) -> None:
    run = begin(
        engine, Step(id="make"), Step(id="check", verifies="make"), Step(id="plan"),
        call(needs=("plan",)),
    )  # fmt: skip
    ship, make = run.steps["ship"], run.steps["make"]
    assert engine.tasks.block(ship, [make]).ok
    run.finish("make", "plan")
    shipping, judge = of(run), run.take("check")
    assert engine.work.complete(judge.task.id, judge.token, {"verdict": "reject"}).ok
    if ended == "well":
        shipping.finish("pack", "send")
    else:
        shipping.break_for_good("pack")
    engine.runs.advance(run.id)
    assert (run.states["ship"], run.states["make"]) == ("blocked", "ready")
    if freed == "done":
        run.finish("make")
    else:
        assert engine.tasks.unblock(ship).ok
    assert run.statuses["ship"] == ("done" if ended == "well" else "failed")


def test_a_step_whose_run_goes_on_is_not_told_to_wait_nor_is_what_it_needs_reset(
    engine: Engine,
) -> None:
    run = begin(engine, Step(id="plan"), Step(id="aside"), call(needs=("plan",)))
    run.finish("plan")
    answer = engine.tasks.block(run.steps["ship"], [run.steps["aside"]])
    assert answer.reason is Refusal.INVALID_TRANSITION
    assert engine.tasks.reset(run.steps["plan"]).reason is Refusal.STARTED_DEPENDENTS
