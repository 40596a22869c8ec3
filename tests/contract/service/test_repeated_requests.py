"""To ask for what is so already is no error to a front end: it is repeated, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.service.commands.request_errors import require_accepted
from tests.contract.advised import advised
from tests.contract.engine.state.loops.test_loops import begin
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.engine.state.verdicts.test_verifiers import REJECT, current, do, judge
from tests.contract.raw_store import dump
from tests.contract.task_states import break_for_good, create, finish, start, take

Ask = Callable[[str], TransitionResult]


def twice(store_url: str, ask: Ask, identifier: str) -> None:
    first = ask(identifier)
    assert (first.ok, first.repeated) == (True, False)
    store = dump(store_url)
    again = ask(identifier)
    assert (again.repeated, again.status) == (True, first.status)
    assert require_accepted(identifier, again) == again
    assert dump(store_url) == store


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry"])
def test_a_run_is_asked_for_the_same_twice(engine: Engine, store_url: str, verb: str) -> None:
    run = start(engine)
    if verb == "resume":
        assert engine.runs.pause(run.id).ok
    if verb == "retry":
        run.break_for_good("plan")
    twice(store_url, getattr(engine.runs, verb), run.id)


@pytest.mark.parametrize(
    "verb", ["hold", "unhold", "cancel", "enqueue", "retry", "reopen", "reset", "start_planning"]
)
def test_a_task_is_asked_for_the_same_twice(engine: Engine, store_url: str, verb: str) -> None:
    task_id = create(engine, enqueue=verb not in {"enqueue", "start_planning"})
    if verb == "unhold":
        assert engine.tasks.hold(task_id).ok
    if verb in {"retry", "reopen", "reset"}:
        break_for_good(engine, task_id)
    twice(store_url, getattr(engine.tasks, verb), task_id)


@pytest.mark.parametrize("verb", ["retry", "reopen", "reset", "cancel"])
def test_a_plan_is_asked_for_the_same_twice(engine: Engine, store_url: str, verb: str) -> None:
    parent, (child,) = plan(engine, "one")
    assert engine.tasks.finalize_plan(parent).ok
    if verb != "cancel":
        break_for_good(engine, child)
    twice(store_url, getattr(engine.tasks, verb), parent)


def test_a_retry_is_repeated_only_where_there_was_one(engine: Engine, store_url: str) -> None:
    run, lone, idle = start(engine), create(engine), create(engine)
    break_for_good(engine, idle)
    assert engine.tasks.reset(idle).ok
    done = create(engine)
    break_for_good(engine, done)
    assert engine.tasks.retry(done).ok
    finish(engine, done)
    store = dump(store_url)
    answers = [
        engine.runs.retry(run.id),
        engine.tasks.retry(lone),
        engine.tasks.reopen(lone),
        engine.tasks.retry(idle),
        engine.tasks.retry(done),
    ]
    assert [each.reason for each in answers] == [Refusal.INVALID_TRANSITION] * 5
    assert not any(each.repeated for each in answers)
    assert dump(store_url) == store


def not_repeated(engine: Engine, store_url: str, task_id: str) -> list[Advice]:
    """Have a retry and a re-opening of an open task be refused; the answer is the advice."""
    store = dump(store_url)
    answers = [engine.tasks.retry(task_id), engine.tasks.reopen(task_id)]
    for answer in answers:
        assert (answer.reason, answer.repeated) == (Refusal.INVALID_TRANSITION, False)
    assert dump(store_url) == store
    return advised(answers[0])


@pytest.mark.parametrize("before", ["nothing", "a retry"])
def test_a_retry_of_what_failed_and_waits_for_a_person_tells_who_is_asked(
    engine: Engine, store_url: str, before: str
) -> None:
    once = RetryPolicy(max_attempts=1)
    run = begin(engine, Step(id="try", retry=once, on_failure=OnFailure(action="ask")))
    task = current(engine, run, "try").id
    if before == "a retry":
        assert engine.tasks.cancel(task).ok
        assert engine.tasks.retry(task).ok
    assert engine.work.fail(task, take(engine, task).token, "red").ok
    assert not_repeated(engine, store_url, task) == [Advice(Action.APPROVE, task)]
    assert engine.tasks.get(task).holds.names == ("approval",)


def test_a_retry_of_a_run_in_which_a_person_is_asked_about_a_failure_is_not_repeated(
    engine: Engine, store_url: str
) -> None:
    once, ask = RetryPolicy(max_attempts=1), OnFailure(action="ask")
    run = begin(engine, Step(id="gate", approval="Go?"), Step(id="try", retry=once, on_failure=ask))
    assert engine.runs.cancel(run).ok
    twice(store_url, engine.runs.retry, run)
    task = current(engine, run, "try").id
    assert engine.work.fail(task, take(engine, task).token, "red").ok
    answer = engine.runs.retry(run)
    assert (answer.reason, answer.repeated) == (Refusal.INVALID_TRANSITION, False)
    assert advised(answer) == [Advice(Action.APPROVE, task)]


def test_a_retry_of_what_was_reset_and_has_never_ended_is_not_repeated(
    engine: Engine, store_url: str
) -> None:
    task = create(engine)
    assert engine.tasks.reset(task).ok
    assert engine.tasks.enqueue(task).ok
    assert not_repeated(engine, store_url, task) == []


@pytest.mark.parametrize("back", ["rejected", "retried"])
def test_a_retry_of_what_waits_for_its_next_attempt_tells_how_to_start_it_now(
    engine: Engine, store_url: str, back: str
) -> None:
    run = begin(engine, Step(id="implement"), Step(id="verify", verifies="implement"))
    task = current(engine, run, "implement").id
    if back == "rejected":
        do(engine, run, "implement")
        assert judge(engine, run, REJECT).ok
    else:
        assert engine.tasks.cancel(task).ok
        assert engine.tasks.retry(task).ok
    assert engine.work.fail(task, take(engine, task).token, "red").ok
    assert not_repeated(engine, store_url, task) == [Advice(Action.RUN_NOW, task)]


def test_a_retry_is_repeated_while_what_came_back_runs(engine: Engine, store_url: str) -> None:
    task = create(engine)
    break_for_good(engine, task)
    assert engine.tasks.retry(task).ok
    assert engine.tasks.edit(task, {"priority": 2}).ok
    assert engine.tasks.retry(task).repeated
    attempt = take(engine, task)
    assert engine.tasks.retry(task).repeated
    assert engine.tasks.reopen(task).repeated
    assert engine.work.release(task, attempt.token).ok
    not_repeated(engine, store_url, task)


def test_a_retry_of_work_that_a_verifier_sent_back_is_not_answered_as_repeated(
    engine: Engine,
) -> None:
    run = begin(engine, Step(id="implement"), Step(id="verify", verifies="implement"))
    do(engine, run, "implement")
    assert judge(engine, run, REJECT).ok
    for step in ("implement", "verify"):
        assert not engine.tasks.retry(current(engine, run, step).id).repeated
    assert engine.tasks.reopen(current(engine, run, "implement").id).repeated


def test_an_ended_plan_is_not_being_planned(engine: Engine) -> None:
    parent, _ = plan(engine, "one")
    assert engine.tasks.cancel(parent).ok
    answer = engine.tasks.start_planning(parent)
    assert (answer.reason, answer.repeated) == (Refusal.INVALID_TRANSITION, False)
