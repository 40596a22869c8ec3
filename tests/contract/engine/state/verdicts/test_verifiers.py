"""Verifiers: what is rejected is done again with the feedback, and only an acceptance passes."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_loops import begin, of, ready
from tests.contract.task_states import finish, take

ACCEPT = {"verdict": "accept"}
REJECT = {"verdict": "reject", "feedback": "too long"}


def body(**verifier: Any) -> tuple[Step, ...]:
    return (
        Step(id="implement"),
        Step(id="lint", needs=("implement",)),
        Step(id="verify", verifies="implement", needs=("lint",), **verifier),
        Step(id="commit", needs=("implement",)),
    )


def loop(steps: tuple[Step, ...], **more: Any) -> Step:
    return Step(id="build", for_each=Reference.parse("for_each", "input"), steps=steps, **more)


def current(engine: Engine, run: str, step: str, place: int = 0) -> Task:
    return of(engine, run, step)[place]


def do(engine: Engine, run: str, *steps: str) -> None:
    for step in steps:
        finish(engine, current(engine, run, step).id)


def judge(
    engine: Engine, run: str, verdict: object, *, step: str = "verify", place: int = 0
) -> TransitionResult:
    task = current(engine, run, step, place)
    return engine.work.complete(task.id, take(engine, task.id).token, verdict)


def test_a_need_on_a_verified_step_is_a_need_on_its_verifier(engine: Engine) -> None:
    run = begin(engine, *body())
    do(engine, run, "implement", "lint")
    assert ready(engine, run) == ["verify None"]
    assert judge(engine, run, ACCEPT).ok
    taken = take(engine, current(engine, run, "commit").id)
    assert taken.needs["implement"] == "output"
    assert taken.needs["verify"] == ACCEPT


def test_a_rejection_reopens_what_was_verified_up_to_the_verifier(engine: Engine) -> None:
    run = begin(engine, *body())
    do(engine, run, "implement", "lint")
    attempt = take(engine, current(engine, run, "verify").id)
    assert engine.work.complete(attempt.task.id, attempt.token, REJECT).ok
    again = engine.work.complete(attempt.task.id, attempt.token, REJECT)
    assert again.repeated
    other = engine.work.complete(attempt.task.id, attempt.token, ACCEPT)
    assert other.reason is Refusal.RESULT_CONFLICT
    assert ready(engine, run) == ["implement None"]
    implement, verify = current(engine, run, "implement"), current(engine, run, "verify")
    assert (implement.feedback, implement.epoch, implement.failures) == ("too long", 2, 0)
    assert (verify.state, verify.round, verify.epoch) == ("blocked", 1, 2)
    (kept,) = engine.tasks.attempts(verify.id)
    assert kept.outcome == "rejected"
    do(engine, run, "implement", "lint")
    assert judge(engine, run, ACCEPT).ok
    do(engine, run, "commit")
    assert engine.runs.get(run).status == "completed"


def test_an_item_is_done_only_after_acceptance_and_a_rejection_reopens_only_its_own(
    engine: Engine,
) -> None:
    run = begin(engine, loop(body(), parallel=2), given=["a", "b"])
    for place in (0, 1):
        finish(engine, current(engine, run, "implement", place).id, f"work {place}")
        finish(engine, current(engine, run, "lint", place).id)
    assert judge(engine, run, REJECT, place=0).ok
    assert judge(engine, run, ACCEPT, place=1).ok
    assert [item.status for item in of(engine, run, "build")] == [Status.QUEUED] * 3
    finish(engine, current(engine, run, "commit", 1).id, "committed")
    assert [item.status for item in of(engine, run, "build")] == [
        Status.QUEUED,
        Status.QUEUED,
        Status.DONE,
    ]
    assert ready(engine, run) == ["implement 0"]
    assert current(engine, run, "implement", 1).epoch == 1


@pytest.mark.parametrize(
    "said", [None, "fine", {}, {"verdict": "maybe"}, {"verdict": "accept", "items": "all"}]
)
def test_no_verdict_never_passes(engine: Engine, said: object) -> None:
    run = begin(engine, *body(retry=RetryPolicy(max_attempts=2, backoff=0)))
    do(engine, run, "implement", "lint")
    assert judge(engine, run, said).reason is Refusal.INVALID_OUTPUT
    verify = current(engine, run, "verify")
    assert (verify.status, verify.failures, verify.round) == (Status.QUEUED, 1, 0)
    assert judge(engine, run, said).reason is Refusal.INVALID_OUTPUT
    assert current(engine, run, "verify").status is Status.FAILED
    assert engine.runs.get(run).status == "failed"


def test_a_verifier_that_dies_is_retried_and_its_item_is_not(
    engine: Engine, clock: ManualClock
) -> None:
    run = begin(engine, loop(body()), given=["a"])
    do(engine, run, "implement", "lint")
    take(engine, current(engine, run, "verify").id)
    clock.advance(31)
    engine.work.recover()
    verify, implement = current(engine, run, "verify"), current(engine, run, "implement")
    assert (verify.lost, verify.round, verify.status) == (1, 0, Status.QUEUED)
    assert (implement.status, implement.epoch) == (Status.DONE, 1)


def spend(engine: Engine, run: str, rounds: int = 2) -> None:
    for _ in range(rounds):
        do(engine, run, "implement", "lint")
        assert judge(engine, run, REJECT).ok


def test_rounds_end_with_a_failure_and_a_retry_resumes_the_item_with_fresh_budgets(
    engine: Engine,
) -> None:
    run = begin(engine, loop(body(max_rounds=2)), given=["a"])
    spend(engine, run)
    assert engine.runs.get(run).status == "failed"
    assert current(engine, run, "verify").error == {"rounds": 2, "feedback": "too long"}
    assert engine.runs.retry(run).ok
    implement, verify = current(engine, run, "implement"), current(engine, run, "verify")
    assert ready(engine, run) == ["implement 0"]
    assert implement.feedback == "too long"
    assert (verify.state, verify.round) == ("blocked", 0)
    spend(engine, run, 1)
    do(engine, run, "implement", "lint")
    assert judge(engine, run, ACCEPT).ok
    do(engine, run, "commit")
    assert engine.runs.get(run).status == "completed"


def test_rounds_may_end_with_a_skip(engine: Engine) -> None:
    run = begin(engine, *body(max_rounds=2, on_failure=OnFailure(action="skip")))
    spend(engine, run)
    verify = current(engine, run, "verify")
    assert (verify.status, verify.skipped, verify.round) == (Status.DONE, True, 2)
    do(engine, run, "commit")
    assert engine.runs.get(run).status == "completed"


@pytest.mark.parametrize("approved", [True, False])
def test_rounds_may_end_with_a_question_to_a_person(engine: Engine, *, approved: bool) -> None:
    run = begin(engine, *body(max_rounds=2, on_failure=OnFailure(action="ask")))
    spend(engine, run)
    verify = current(engine, run, "verify")
    assert (verify.state, verify.holds.names, verify.generation) == ("held", ("approval",), 3)
    assert ready(engine, run) == []
    if not approved:
        assert engine.tasks.reject(verify.id, reason="enough").ok
        assert engine.runs.get(run).status == "failed"
        return
    assert engine.tasks.approve(verify.id).ok
    assert ready(engine, run) == ["implement None"]
    do(engine, run, "implement", "lint")
    assert judge(engine, run, REJECT).ok
    assert current(engine, run, "verify").holds.names == ("approval",)


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([7], "there is no item 7; there are 3"),
        ([0, 3], "there is no item 3; there are 3"),
        ([-1], "-1 is no place of an item"),
        ([True], "True is no place of an item"),
        (["1"], "'1' is no place of an item"),
        (0, "0 is no list of places"),
        ("", "'' is no list of places"),
    ],
)
def test_a_verdict_on_items_that_are_not_there_is_none(
    engine: Engine, items: object, why: str
) -> None:
    verifier = Step(id="verify", verifies="build", retry=RetryPolicy(max_attempts=2, backoff=0))
    run = begin(engine, loop((Step(id="implement"),), parallel=3), verifier, given=["a", "b", "c"])
    for place in range(3):
        finish(engine, current(engine, run, "implement", place).id)
    answer = judge(engine, run, {**REJECT, "items": items})
    assert (answer.reason, why in answer.detail) == (Refusal.INVALID_OUTPUT, True)
    verify = current(engine, run, "verify")
    assert (verify.status, verify.failures, verify.round) == (Status.QUEUED, 1, 0)
    assert why in verify.error
    assert {task.epoch for task in of(engine, run, "implement")} == {1}
    assert judge(engine, run, {**REJECT, "items": []}).ok
    assert len(ready(engine, run)) == 3


def test_a_verified_loop_begins_again_with_the_items_that_are_named(engine: Engine) -> None:
    build = loop((Step(id="implement"),), parallel=1)
    run = begin(
        engine, build, Step(id="verify", verifies="build"), Step(id="last", needs=("build",)),
        given=["a", "b", "c"],
    )  # fmt: skip
    for place in range(3):
        finish(engine, current(engine, run, "implement", place).id, f"first {place}")
    assert judge(engine, run, {**REJECT, "items": [0, 2]}).ok
    assert ready(engine, run) == ["implement 0"]
    finish(engine, current(engine, run, "implement", 0).id, "second 0")
    finish(engine, current(engine, run, "implement", 2).id, "second 2")
    assert current(engine, run, "build").output == ["second 0", "first 1", "second 2"]
    assert judge(engine, run, REJECT).ok
    for place in range(3):
        finish(engine, current(engine, run, "implement", place).id, f"third {place}")
    assert judge(engine, run, ACCEPT).ok
    do(engine, run, "last")
    assert engine.runs.get(run).status == "completed"


def test_a_step_that_fails_may_begin_again_further_up(engine: Engine) -> None:
    once = RetryPolicy(max_attempts=1)
    back = OnFailure(action="goto", step="build", max_rounds=1)
    steps = (Step(id="build"), Step(id="pack", needs=("build",)))
    run = begin(engine, *steps, Step(id="test", needs=("pack",), retry=once, on_failure=back))
    test = current(engine, run, "test").id
    for detour in (1, 2):
        do(engine, run, "build", "pack")
        attempt = take(engine, test)
        assert engine.work.fail(test, attempt.token, "red").ok
        assert engine.work.fail(test, attempt.token, "red").repeated
        if detour == 1:
            assert ready(engine, run) == ["build None"]
            assert current(engine, run, "build").feedback == "red"
            assert current(engine, run, "test").state == "blocked"
    assert engine.runs.get(run).status == "failed"
    assert [each.outcome for each in engine.tasks.attempts(test)] == ["failed"] * 2


@pytest.mark.parametrize("vanished", [False, True])
@pytest.mark.parametrize("action", ["skip", "ask"])
def test_a_step_that_fails_for_good_does_as_it_says(
    engine: Engine, clock: ManualClock, *, vanished: bool, action: Literal["skip", "ask"]
) -> None:
    once = RetryPolicy(max_attempts=1, max_lost=1)
    run = begin(engine, Step(id="try", retry=once, on_failure=OnFailure(action=action)))
    attempt = take(engine, current(engine, run, "try").id)
    if vanished:
        clock.advance(31)
        engine.work.recover()
    else:
        assert engine.work.fail(attempt.task.id, attempt.token, "red").ok
    task = current(engine, run, "try")
    assert (task.state, task.skipped) == (("done", True) if action == "skip" else ("held", False))
    (kept,) = engine.tasks.attempts(task.id)
    assert kept.outcome == ("lost" if vanished else "failed")
    if action == "ask":
        assert engine.tasks.approve(task.id).ok
        do(engine, run, "try")
    assert engine.runs.get(run).status == "completed"


def test_an_approval_is_settled_by_a_person_once_it_has_all_it_needs(engine: Engine) -> None:
    steps = (Step(id="build"), Step(id="gate", approval="Merge?", needs=("build",)))
    for settle, status in (("approve", "completed"), ("reject", "failed")):
        run = begin(engine, *steps)
        gate = current(engine, run, "gate").id
        assert not getattr(engine.tasks, settle)(gate).ok
        do(engine, run, "build")
        assert engine.work.claim("worker") == []
        assert getattr(engine.tasks, settle)(gate).ok
        assert not engine.tasks.approve(gate).ok
        assert engine.runs.get(run).status == status


def test_a_question_holds_the_task_until_it_is_answered(engine: Engine) -> None:
    run = begin(engine, Step(id="try"))
    attempt = take(engine, current(engine, run, "try").id)
    task = attempt.task.id
    assert engine.work.ask(task, attempt.token, "which branch?").ok
    assert engine.tasks.get(task).question == "which branch?"
    assert engine.work.claim("worker") == []
    assert engine.work.complete(task, attempt.token).reason is Refusal.STALE_TOKEN
    assert engine.tasks.answer(task, "main").ok
    assert not engine.tasks.answer(task, "other").ok
    (again,) = engine.work.claim("worker")
    assert again.task.feedback == "main"


def test_a_reopened_step_inside_a_finished_loop_brings_back_all_around_it(engine: Engine) -> None:
    run = begin(engine, loop((Step(id="one"),)), Step(id="last", needs=("build",)), given=["a"])
    do(engine, run, "one", "last")
    assert engine.runs.get(run).status == "completed"
    assert engine.tasks.reopen(current(engine, run, "one").id).ok
    assert [task.status for task in of(engine, run, "build")] == [Status.QUEUED] * 2
    assert current(engine, run, "last").state == "blocked"
    do(engine, run, "one", "last")
    assert engine.runs.get(run).status == "completed"


def seen(engine: Engine, run: str, *addresses: str) -> list[str]:
    """What a person sees of some tasks, the same in a list and of each alone."""
    listed = {task.id: task.state for task in engine.runs.tasks(run)}
    tasks = [engine.runs.task(run, address) for address in addresses]
    assert [task.state for task in tasks] == [listed[task.id] for task in tasks]
    return [task.state for task in tasks]


def test_work_that_waits_for_its_verdict_is_shown_as_verifying(engine: Engine) -> None:
    steps = (Step(id="implement"), Step(id="verify", verifies="implement"))
    run = begin(engine, loop(steps), Step(id="check", verifies="build"), given=["a", "b"])
    item = ("build.1", "build.1.implement")
    assert seen(engine, run, "build", *item) == ["in progress 0/2", "in progress 0/2", "ready"]
    do(engine, run, "implement")
    assert seen(engine, run, "build", *item) == ["in progress 0/2", "verifying", "verifying"]
    first = current(engine, run, "verify")
    verdict = take(engine, first.id)
    assert seen(engine, run, *item, "build.1.verify") == ["verifying", "verifying", "running"]
    assert engine.work.complete(first.id, verdict.token, REJECT).ok
    assert seen(engine, run, *item, "build.1.verify") == ["in progress 0/2", "ready", "blocked"]
    do(engine, run, "implement")
    assert judge(engine, run, ACCEPT).ok
    assert seen(engine, run, *item) == ["done", "done"]
    finish(engine, current(engine, run, "implement", 1).id)
    assert judge(engine, run, ACCEPT, place=1).ok
    assert seen(engine, run, "build", "build.2", "check") == ["verifying", "done", "ready"]
    assert judge(engine, run, ACCEPT, step="check").ok
    assert seen(engine, run, "build", "check") == ["done", "done"]


def test_a_step_that_stands_before_other_work_is_not_verified_yet(engine: Engine) -> None:
    run = begin(engine, *body())
    do(engine, run, "implement")
    assert seen(engine, run, "implement") == ["done"]
    do(engine, run, "lint")
    assert seen(engine, run, "implement", "lint") == ["verifying", "done"]
    task = current(engine, run, "verify")
    assert engine.work.fail(task.id, take(engine, task.id).token, "no", retryable=False).ok
    assert seen(engine, run, "implement", "verify") == ["done", "failed"]
