"""After the last word of a verifier or a person, a run goes on with work that is judged anew."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_loops import begin, loop, ready
from tests.contract.engine.state.verdicts.test_verifiers import REJECT, current, do, judge
from tests.contract.task_states import break_for_good, finish, take

ONCE = RetryPolicy(max_attempts=1)
ASK = OnFailure(action="ask")
MAKE = Step(id="implement")


def test_a_verifier_that_gives_no_verdict_is_told_the_status_of_its_task(engine: Engine) -> None:
    run = begin(engine, MAKE, Step(id="verify", verifies="implement", retry=ONCE))
    do(engine, run, "implement")
    answer = judge(engine, run, "fine")
    assert (answer.reason, answer.status) == (Refusal.INVALID_OUTPUT, "failed")


def test_a_rejection_without_a_word_keeps_the_error_there_was(engine: Engine) -> None:
    steps = (Step(id="try", retry=ONCE, on_failure=ASK), Step(id="gate", approval="Go on?"))
    run = begin(engine, *steps)
    attempt = take(engine, current(engine, run, "try").id)
    assert engine.work.fail(attempt.task.id, attempt.token, "red").ok
    assert engine.tasks.reject(attempt.task.id).ok
    assert (current(engine, run, "try").error, engine.runs.get(run).error) == ("red", "red")
    run = begin(engine, *steps)
    gate = current(engine, run, "gate").id
    assert engine.tasks.reject(gate).ok
    assert (engine.tasks.get(gate).error, engine.runs.get(run).error) == ("rejected", "rejected")


def rejected(engine: Engine, on_failure: OnFailure) -> str:
    """A run whose verifier has rejected for the last time, and noted something before."""
    verifier = Step(id="verify", verifies="implement", max_rounds=1, on_failure=on_failure)
    run = begin(engine, MAKE, verifier)
    do(engine, run, "implement")
    attempt = take(engine, current(engine, run, "verify").id)
    assert engine.work.record_effect(attempt.task.id, attempt.token, "look", "bad").answer.ok
    assert engine.work.complete(attempt.task.id, attempt.token, REJECT).ok
    return run


@pytest.mark.parametrize("way", ["retry", "approve", "cancel and retry"])
def test_a_verifier_out_of_rounds_looks_at_the_new_work_anew(engine: Engine, way: str) -> None:
    run = rejected(engine, OnFailure() if way == "retry" else ASK)
    verify = current(engine, run, "verify").id
    if way == "approve":
        assert engine.tasks.approve(verify).ok
    else:
        assert way == "retry" or engine.runs.cancel(run).ok
        assert engine.runs.retry(run).ok
    assert ready(engine, run) == ["implement None"]
    do(engine, run, "implement")
    attempt = take(engine, verify)
    assert engine.work.record_effect(verify, attempt.token, "look", "good").value == "good"


def test_approval_of_a_verifier_that_only_failed_leaves_the_work_as_it_is(engine: Engine) -> None:
    verifier = Step(id="verify", verifies="implement", max_rounds=1, retry=ONCE, on_failure=ASK)
    run = begin(engine, MAKE, verifier)
    finish(engine, current(engine, run, "implement").id, "made")
    attempt = take(engine, current(engine, run, "verify").id)
    assert engine.work.fail(attempt.task.id, attempt.token, "red").ok
    assert engine.tasks.approve(attempt.task.id).ok
    assert ready(engine, run) == ["verify None"]
    assert current(engine, run, "implement").output == "made"


def test_a_rejection_reaches_the_work_that_its_verifier_needs_no_more(engine: Engine) -> None:
    run = begin(engine, MAKE, Step(id="verify", verifies="implement"))
    assert engine.tasks.unblock(current(engine, run, "verify").id).ok
    do(engine, run, "implement")
    assert judge(engine, run, REJECT).ok
    assert current(engine, run, "implement").feedback == "too long"
    assert ready(engine, run) == ["implement None", "verify None"]


def test_a_reopened_item_is_answered_as_cancelled_when_the_loop_begins_again_without_it(
    engine: Engine,
) -> None:
    run = begin(
        engine,
        loop("input", body=(Step(id="one"),)),
        Step(id="verify", verifies="build", max_rounds=1),
        given=["a"],
    )
    assert engine.tasks.unblock(current(engine, run, "verify").id).ok
    do(engine, run, "one")
    assert judge(engine, run, REJECT).ok
    item = engine.runs.task(run, "build.1").id
    # Its verifier, which needs it no more, is tried again too, and no item is left to judge.
    answer = engine.tasks.reopen(item)
    assert answer.ok
    assert answer.status == engine.tasks.get(item).status == "cancelled"
    assert engine.runs.task(run, "build.1").id != item


def test_an_item_that_is_sent_back_is_held_as_its_run_is_by_then(engine: Engine) -> None:
    steps = (loop("input", body=(Step(id="one"),)), Step(id="verify", verifies="build"))
    run = begin(engine, *steps, given=["a"])
    attempt = take(engine, current(engine, run, "one").id)
    assert engine.runs.hold(run, "paused").ok
    assert engine.work.complete(attempt.task.id, attempt.token, "made").ok
    assert engine.runs.unhold(run, "paused").ok
    assert judge(engine, run, REJECT).ok
    assert engine.runs.task(run, "build.1").state == "in progress 0/1"
    diagnosis = engine.doctor()
    assert diagnosis.ok, str(diagnosis)


def test_a_step_that_needs_rejected_work_past_its_verifier_waits_for_it_again(
    engine: Engine,
) -> None:
    run = begin(engine, MAKE, Step(id="verify", verifies="implement"), Step(id="aside"))
    aside = current(engine, run, "aside").id
    assert engine.tasks.block(aside, [current(engine, run, "implement").id]).ok
    do(engine, run, "implement")
    assert judge(engine, run, REJECT).ok
    assert ready(engine, run) == ["implement None"]
    do(engine, run, "implement")
    assert ready(engine, run) == ["verify None", "aside None"]


def test_a_superseded_task_is_not_reopened_and_brings_no_dependent_back(engine: Engine) -> None:
    run = begin(engine, loop("input", body=(Step(id="one"),)), Step(id="aside"), given=["a"])
    one, aside = current(engine, run, "one").id, current(engine, run, "aside").id
    assert engine.tasks.block(aside, [one]).ok
    do(engine, run, "one", "aside")
    assert engine.runs.retry(run, step="build").ok
    before = engine.runs.tasks(run)
    assert engine.tasks.reopen(one).reason is Refusal.INVALID_TRANSITION
    assert engine.runs.tasks(run) == before


def test_a_run_that_goes_back_before_what_had_failed_does_not_fail(engine: Engine) -> None:
    back = OnFailure(action="goto", step="implement", max_rounds=1)
    fork = [
        Step(id=name, needs=("implement",), retry=ONCE, on_failure=plan)
        for name, plan in (("pack", OnFailure()), ("test", back))
    ]
    run = begin(engine, MAKE, *fork)
    do(engine, run, "implement")
    test = take(engine, current(engine, run, "test").id)
    break_for_good(engine, current(engine, run, "pack").id)
    assert engine.work.fail(test.task.id, test.token, "red").ok
    assert (engine.runs.get(run).status, ready(engine, run)) == ("running", ["implement None"])
    do(engine, run, "implement", "pack", "test")
    assert engine.runs.get(run).status == "completed"


@pytest.mark.parametrize("end", ["lost", "skipped", "untold"])
def test_a_verifier_that_ends_without_a_verdict_gives_none_of_an_earlier_round(
    engine: Engine, clock: ManualClock, end: str
) -> None:
    """It is lost, or the work does not want it any more, or does not say whether it does."""
    when = None if end == "lost" else Reference.parse("when", "steps.implement.large")
    once = RetryPolicy(max_lost=1)
    run = begin(engine, MAKE, Step(id="verify", verifies="implement", when=when, retry=once))
    implement, verify = (current(engine, run, step).id for step in ("implement", "verify"))
    finish(engine, implement, {"large": True})
    assert judge(engine, run, REJECT).ok
    assert engine.tasks.get(verify).output == REJECT
    finish(engine, implement, "small" if end == "untold" else {"large": end == "lost"})
    if end == "lost":
        take(engine, verify)
        clock.advance(31)
        engine.work.recover()
    ended = engine.tasks.get(verify)
    assert (ended.status, ended.output) == ("done" if end == "skipped" else "failed", None)
