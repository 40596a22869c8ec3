"""Two lost cancels of a job queue: a pull overwrites one, a report sent again the other."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from tests.contract.raw_store import dump
from tests.contract.task_states import create, take


def test_pull_work_never_overwrites_a_concurrent_cancel(engine: Engine) -> None:
    job = create(engine)
    cancel = engine.tasks.cancel.submit(job)
    pull = engine.work.claim.submit("node")
    assert cancel.result().ok
    assert pull.result() == []
    assert engine.work.claim_by_id(job, "node") == []
    assert engine.tasks.get(job).status == "cancelled"
    assert [event.type for event in engine.tasks.events(job)] == ["task.created", "task.cancelled"]


def test_a_cancel_that_comes_after_the_pull_is_not_lost(engine: Engine) -> None:
    job = create(engine)
    (assignment,) = engine.work.claim("node")
    assert engine.tasks.cancel(job).ok
    assert engine.work.guard(job, assignment.token).reason is Refusal.CANCELLED
    assert engine.tasks.get(job).status == "cancelled"


def test_a_cancelled_job_is_not_put_back_to_the_front_of_the_queue(
    engine: Engine, store_url: str
) -> None:
    first = create(engine, "first", priority=9)
    others = [create(engine, "other") for _ in range(2)]
    assert engine.tasks.cancel(first).ok
    pulled = [engine.work.claim("node") for _ in range(3)]
    assert [[each.task.id for each in found] for found in pulled] == [[others[0]], [others[1]], []]
    store = dump(store_url)
    assert engine.work.claim("node") == []
    assert dump(store_url) == store


@pytest.mark.parametrize("rollback", ["release", "recover", "fail"])
def test_the_rollback_to_pending_needs_the_guard_too(
    engine: Engine, clock: ManualClock, store_url: str, rollback: str
) -> None:
    job = create(engine)
    token = take(engine, job).token
    assert engine.tasks.cancel(job).ok
    clock.advance(60)
    store = dump(store_url)
    match rollback:
        case "release":
            assert engine.work.release(job, token).reason is Refusal.ALREADY_TERMINAL
        case "recover":
            assert engine.work.recover() == []
        case _:
            assert engine.work.fail(job, token, "lost").reason is Refusal.ALREADY_TERMINAL
    assert dump(store_url) == store


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_report_result_is_idempotent(engine: Engine, store_url: str, outcome: str) -> None:
    job = create(engine)
    token = take(engine, job).token

    def report() -> tuple[bool, bool]:
        answer = (
            engine.work.complete(job, token, {"score": 97})
            if outcome == "completed"
            else engine.work.fail(job, token, {"score": 97}, retryable=False)
        )
        return answer.ok, answer.repeated

    assert report() == (True, False)
    store = dump(store_url)
    assert report() == (True, True)
    assert dump(store_url) == store


def test_a_cancel_between_two_reports_of_one_result_changes_nothing(
    engine: Engine, store_url: str
) -> None:
    job = create(engine)
    token = take(engine, job).token
    assert engine.work.complete(job, token, 97).ok
    store = dump(store_url)
    assert engine.tasks.cancel(job).reason is Refusal.ALREADY_TERMINAL
    assert engine.work.complete(job, token, 97).repeated
    assert dump(store_url) == store


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_report_result_never_overwrites_a_cancelled_status(
    engine: Engine, store_url: str, outcome: str
) -> None:
    job = create(engine)
    token = take(engine, job).token
    assert engine.tasks.cancel(job).ok
    store = dump(store_url)
    for _ in range(2):
        answer = (
            engine.work.complete(job, token, 97)
            if outcome == "completed"
            else engine.work.fail(job, token, "broken")
        )
        assert (answer.ok, answer.reason) == (False, Refusal.ALREADY_TERMINAL)
    assert dump(store_url) == store


def test_a_result_that_differs_from_the_first_is_refused(engine: Engine, store_url: str) -> None:
    job = create(engine)
    token = take(engine, job).token
    assert engine.work.complete(job, token, 97).ok
    store = dump(store_url)
    assert engine.work.complete(job, token, 98).reason is Refusal.RESULT_CONFLICT
    assert engine.work.fail(job, token, "broken").reason is Refusal.RESULT_CONFLICT
    assert dump(store_url) == store
