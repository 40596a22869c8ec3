"""What a run may use: at a limit nothing new of it starts, until somebody allows it more."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice
from holdfast.model.budget import Budget
from holdfast.model.event import fold_events
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import Assignment, Renewal
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.advised import advised
from tests.contract.task_states import MISSING_RUN, StartedRun, start

SOON = RetryPolicy(backoff=0, backoff_max=0)


def begin(engine: Engine, budget: Budget) -> StartedRun:
    steps = tuple(Step(id=name, retry=SOON) for name in ("one", "two", "three"))
    return start(
        engine, Workflow.define("side", steps, declared=WorkflowDeclarations(budget=budget))
    )


def tell(engine: Engine, each: Assignment, usage: object) -> bool:
    """Renew an attempt with what it has used so far."""
    (answer,) = engine.work.renew([Renewal(task_id=each.task_id, token=each.token, usage=usage)])
    return answer.ok


def complete(engine: Engine, each: Assignment, usd: float) -> None:
    assert engine.work.complete(each.task_id, each.token, usage={"usd": usd}).ok


def test_a_run_that_has_used_its_dollars_starts_nothing_new_and_what_runs_may_finish(
    engine: Engine,
) -> None:
    run = begin(engine, Budget(usd=1))
    one, two = run.take("one"), run.take("two")
    assert tell(engine, one, {"usd": 0.4, "tokens": 9})
    complete(engine, two, 0.599_999)
    assert run.holds == []
    before = len(engine.runs.events(run.id))
    assert tell(engine, one, {"usd": 0.400_001})
    assert run.holds == ["budget"]
    added = engine.runs.events(run.id)[before:]
    assert [(event.type, event.data) for event in added] == [
        ("run.held", {"holds": 8}),
        ("task.held", {"run_holds": 8}),
        ("task.held", {"run_holds": 8}),
    ]
    assert engine.work.claim("worker", count=5) == []
    assert engine.work.claim_by_id(run.steps["three"], "worker") == []
    complete(engine, one, 2.5)
    assert (run.status, run.statuses["one"]) == ("running", "done")


def test_the_attempt_that_reaches_the_limit_is_the_last_to_start(engine: Engine) -> None:
    run = begin(engine, Budget(attempts=2))
    first = run.take("one")
    assert run.holds == []
    assert engine.work.release(first.task_id, first.token).ok
    (second,) = engine.work.claim("worker")
    assert run.holds == ["budget"]
    assert engine.work.claim("worker", count=5) == []
    assert engine.work.complete(second.task_id, second.token).ok
    assert run.status == "running"


def test_usage_of_every_attempt_counts_whatever_became_of_the_attempt(
    engine: Engine, clock: ManualClock
) -> None:
    run = begin(engine, Budget(usd=5))
    lost = run.take("one")
    assert tell(engine, lost, {"usd": 1})
    clock.advance(engine.settings.lease + 1)
    assert engine.work.recover()[0].ok
    released = run.take("one")
    assert tell(engine, released, {"usd": 1})
    assert engine.work.release(released.task_id, released.token).ok
    # One that tells of nothing has used nothing, and is not taken for the one before it.
    run.finish("one")
    finished = run.take("two")
    complete(engine, finished, 1)
    assert engine.tasks.reset(finished.task_id).ok
    superseded = run.take("three")
    assert tell(engine, superseded, {"usd": 1})
    assert engine.runs.retry(run.id, step="three").ok
    assert run.holds == []
    last = run.take("two")
    assert tell(engine, last, {"usd": 1})
    assert run.holds == ["budget"]
    told = [each.usage for each in engine.tasks.attempts(run.steps["one"])]
    assert told == [{"usd": 1}, {"usd": 1}, None]


def test_only_a_number_of_dollars_is_money(engine: Engine) -> None:
    run = begin(engine, Budget(usd=1))
    one = run.take("one")
    for usage in ({"usd": "9"}, {"usd": True}, {"usd": None}, [9], 9, "9"):
        assert tell(engine, one, usage)
        assert run.holds == [], usage
    for usd in (-9, 10**40, 1.7e308, float("inf"), float("nan")):
        with pytest.raises(InvalidInput, match=r"^usage\.usd: must be from 0 to 1000000000000"):
            tell(engine, one, {"usd": usd})
    assert run.holds == []
    assert tell(engine, one, {"usd": 10**12})
    assert run.holds == ["budget"]


def test_a_run_that_ends_with_its_last_dollar_has_completed(engine: Engine) -> None:
    run = begin(engine, Budget(usd=1))
    run.finish("one", "two")
    complete(engine, run.take("three"), 1)
    assert run.event_types() == ["run.started", "run.completed"]


def test_an_attempt_that_tells_of_more_than_one_may_use_has_failed_and_is_tried_again(
    engine: Engine,
) -> None:
    run = begin(engine, Budget(usd_per_attempt=1))
    one, two = run.take("one"), run.take("two")
    renewals = [
        Renewal(task_id=each.task_id, token=each.token, usage={"usd": usd})
        for each, usd in ((one, 1), (two, 1.5))
    ]
    kept, ended = engine.work.renew(renewals)
    assert kept.ok
    assert (ended.reason, ended.status) == (Refusal.ALREADY_TERMINAL, "queued")
    assert ended.detail == "the attempt has failed: it used $1.50, and an attempt may use $1"
    assert not tell(engine, two, {"usd": 0.1})
    task = run.task("two")
    assert (task.failures, task.error["code"]) == (1, "budget")
    (attempt,) = engine.tasks.attempts(two.task_id)
    assert (attempt.outcome, attempt.usage) == ("failed", {"usd": 1.5})
    complete(engine, one, 7)
    assert run.task("one").status == "done"
    assert run.holds == []


def test_more_budget_lets_a_run_go_on_in_one_transition(engine: Engine) -> None:
    run = begin(engine, Budget(usd=1, attempts=4))
    one = run.take("one")
    complete(engine, one, 3)
    refused = engine.runs.resume(run.id)
    assert (refused.reason, refused.status) == (Refusal.HELD, "running")
    assert advised(refused) == [Advice(Action.RESUME, run.id, (("add_usd", "3"),))]
    assert engine.runs.resume(run.id, add_usd=1.5).ok
    assert run.holds == ["budget"]
    assert engine.runs.pause(run.id).ok
    before = run.event_types()
    assert engine.runs.resume(run.id, add_usd=0.6, add_attempts=2).ok
    assert run.event_types() == [*before, "run.extended"]
    assert run.holds == []
    found = engine.runs.get(run.id)
    assert found.budget == Budget(usd=3.1, attempts=6)
    events = [event for event in engine.runs.events(run.id) if event.task_id is None]
    told = fold_events(events)
    assert (told["budget_usd"], told["budget_attempts"], told["holds"]) == (3_100_000, 6, 0)
    assert len(engine.work.claim("worker", count=5)) == 2


def test_only_a_limit_that_a_running_run_has_can_be_raised(engine: Engine) -> None:
    run = begin(engine, Budget(usd=1))
    assert engine.runs.resume(run.id, add_attempts=1).reason is Refusal.INVALID_TRANSITION
    without = start(engine)
    assert engine.runs.resume(without.id, add_usd=1).reason is Refusal.INVALID_TRANSITION
    assert engine.runs.resume(MISSING_RUN, add_usd=1).reason is Refusal.NOT_FOUND
    assert engine.runs.cancel(run.id).ok
    assert engine.runs.resume(run.id, add_usd=1).reason is Refusal.ALREADY_TERMINAL
    bad: tuple[Any, ...] = (0, -1, float("nan"), float("inf"), 1e-9, True, "1")
    for each in bad:
        with pytest.raises(InvalidInput, match="add_usd"):
            engine.runs.resume(without.id, add_usd=each)
    assert engine.runs.get(without.id).version == 1


def test_a_retry_gives_a_run_no_more_than_it_had(engine: Engine) -> None:
    run = begin(engine, Budget(usd=1))
    one = run.take("one")
    usage = {"usd": 1}
    assert engine.work.fail(one.task_id, one.token, "broken", retryable=False, usage=usage).ok
    assert (run.status, run.holds) == ("failed", ["failing"])
    assert engine.runs.retry(run.id).ok
    assert (run.status, run.holds) == ("running", ["budget"])
    assert engine.work.claim("worker", count=5) == []
