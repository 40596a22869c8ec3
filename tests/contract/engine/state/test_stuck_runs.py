"""Nothing of a run is left hanging, and nothing is done without its work, whatever came before."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.effect import WakeCondition
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_loops import begin, loop, of, ready, work_off
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, REJECT, current, do, judge
from tests.contract.task_states import break_for_good, create, finish, take

ONE = (Step(id="one"),)
ONCE = RetryPolicy(max_attempts=1)
CHECKED = (
    loop("input", body=ONE),
    Step(id="verify", verifies="build", max_rounds=2),
    Step(id="last", needs=("build",)),
)


def test_a_rejected_loop_without_items_is_looked_at_again(engine: Engine) -> None:
    run = begin(engine, *CHECKED, given=[])
    assert judge(engine, run, REJECT).ok
    assert ready(engine, run) == ["verify None"]
    assert judge(engine, run, ACCEPT).ok
    do(engine, run, "last")
    assert engine.runs.get(run).status == "completed"


def test_items_that_had_not_begun_wait_for_their_turn_again_after_a_retry(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b", "c"])
    finish(engine, of(engine, run, "one")[0].id)
    assert engine.runs.cancel(run).ok
    assert engine.runs.retry(run).ok
    assert [task.status for task in of(engine, run, "build")] == [
        *(Status.QUEUED, Status.DONE),
        *(Status.QUEUED, Status.IDLE),
    ]
    assert work_off(engine, run) == ["one 1", "one 2"]


def test_a_step_that_made_its_group_done_is_not_reset(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), Step(id="last", needs=("build",)), given=["a"])
    one = of(engine, run, "one")[0].id
    finish(engine, one)
    assert engine.tasks.reset(one).reason is Refusal.STARTED_DEPENDENTS
    assert engine.tasks.reset(of(engine, run, "build")[1].id).reason is Refusal.STARTED_DEPENDENTS
    assert engine.tasks.get(one).status is Status.DONE


def test_a_reset_takes_the_failed_groups_around_it_back_too(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a"])
    one = of(engine, run, "one")[0].id
    break_for_good(engine, one)
    assert engine.tasks.reset(one).ok
    assert engine.tasks.enqueue(one).ok
    assert work_off(engine, run) == ["one 0"]


def test_a_reset_item_is_done_again_in_its_turn(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a"])
    take(engine, of(engine, run, "one")[0].id)
    assert engine.tasks.reset(of(engine, run, "build")[1].id).ok
    assert work_off(engine, run) == ["one 0"]


@pytest.mark.parametrize("left", ["release", "lost", "suspend", "ask"])
def test_a_failing_run_or_plan_ends_with_the_last_that_runs_however_that_one_ends(
    engine: Engine, clock: ManualClock, left: str
) -> None:
    run = begin(engine, Step(id="bad"), Step(id="other"))
    parent, (bad, other) = plan(engine, "bad", "other")
    assert engine.tasks.finalize_plan(parent, graph={bad: [], other: []}).ok
    running = [take(engine, each) for each in (of(engine, run, "other")[0].id, other)]
    for each in (of(engine, run, "bad")[0].id, bad):
        break_for_good(engine, each)
    for attempt in running:
        about = (attempt.task.id, attempt.token)
        if left == "release":
            assert engine.work.release(*about).ok
        elif left == "suspend":
            assert engine.work.suspend(*about, WakeCondition(children=True)).ok
        elif left == "ask":
            assert engine.work.ask(*about, "which?").ok
    if left == "lost":
        clock.advance(31)
        engine.work.recover()
    assert engine.runs.get(run).status == "failed"
    assert engine.tasks.get(parent).status is Status.FAILED


def test_a_loop_or_condition_that_needs_nothing_any_more_goes_on(engine: Engine) -> None:
    when = Reference.parse("when", "input")
    steps = (loop("input", body=ONE, needs=("plan",)), Step(id="if", needs=("plan",), when=when))
    run = begin(engine, Step(id="plan"), *steps, given=["a"])
    for name in ("build", "if"):
        assert engine.tasks.unblock(current(engine, run, name).id).ok
    assert sorted(ready(engine, run)) == ["if None", "one 0", "plan None"]


def test_a_wait_for_nothing_is_refused(engine: Engine) -> None:
    attempt = take(engine, create(engine))
    with pytest.raises(InvalidInput, match="say until when"):
        engine.work.suspend(attempt.task.id, attempt.token, WakeCondition())


def test_a_step_that_goes_back_to_a_step_it_needs_no_more_waits_for_no_task(engine: Engine) -> None:
    back = OnFailure(action="goto", step="build", max_rounds=1)
    run = begin(
        engine, Step(id="build"), Step(id="test", needs=("build",), retry=ONCE, on_failure=back)
    )
    test = current(engine, run, "test").id
    assert engine.tasks.unblock(test).ok
    attempt = take(engine, test)
    assert engine.work.fail(test, attempt.token, "red").ok
    assert ready(engine, run) == ["build None", "test None"]


def test_a_verifier_that_rejects_work_it_needs_no_more_waits_for_no_task(engine: Engine) -> None:
    run = begin(engine, Step(id="implement"), Step(id="verify", verifies="implement"))
    assert engine.tasks.unblock(current(engine, run, "verify").id).ok
    assert judge(engine, run, REJECT).ok
    assert ready(engine, run) == ["implement None", "verify None"]
