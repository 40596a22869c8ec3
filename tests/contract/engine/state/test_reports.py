"""A worker's reports are fenced: repeated, conflicting, late and cancelled ones, as rule 4 says."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.task import Renewal
from tests.contract.raw_store import dump
from tests.contract.task_states import Stage, bring, create, finish, start, take


def reason(answer: TransitionResult) -> Refusal | None:
    assert answer.ok == (answer.reason is None)
    return answer.reason


def renew(engine: Engine, stage: Stage) -> TransitionResult:
    return engine.work.renew([Renewal(task_id=stage.task_id, token=stage.token)])[0]


def reports(engine: Engine, stage: Stage) -> list[Refusal | None]:
    """Why each kind of report is refused, in the order complete, fail, release, renew."""
    return [
        reason(engine.work.complete(stage.task_id, stage.token, "late")),
        reason(engine.work.fail(stage.task_id, stage.token, "late")),
        reason(engine.work.release(stage.task_id, stage.token)),
        reason(renew(engine, stage)),
    ]


STALE = [Refusal.STALE_TOKEN] * 4


def test_the_same_result_again_is_repeated_and_changes_nothing(
    engine: Engine, store_url: str
) -> None:
    stage = bring(engine, Status.RUNNING)
    output = {"b": [1, 2.5, None], "a": "ä"}
    assert engine.work.complete(stage.task_id, stage.token, output, usage={"usd": 1}).ok
    store = dump(store_url)
    again = engine.work.complete(stage.task_id, stage.token, dict(reversed(output.items())))
    assert again == TransitionResult(ok=True, repeated=True, status="done")
    assert dump(store_url) == store
    assert engine.tasks.get(stage.task_id).output == output


def test_the_same_failure_again_is_repeated_even_after_the_retry_was_queued(
    engine: Engine, store_url: str
) -> None:
    stage = bring(engine, Status.RUNNING)
    assert engine.work.fail(stage.task_id, stage.token, "broken").status == "queued"
    store = dump(store_url)
    again = engine.work.fail(stage.task_id, stage.token, "broken")
    assert again == TransitionResult(ok=True, repeated=True, status="queued")
    assert dump(store_url) == store


def test_another_result_is_a_conflict(engine: Engine, store_url: str) -> None:
    stage = bring(engine, Status.DONE)
    store = dump(store_url)
    for answer in (
        engine.work.complete(stage.task_id, stage.token, "other"),
        engine.work.fail(stage.task_id, stage.token, "output"),
        engine.work.release(stage.task_id, stage.token),
    ):
        assert reason(answer) is Refusal.RESULT_CONFLICT
    assert dump(store_url) == store


def test_a_result_is_repeated_much_later_when_others_ran_since(engine: Engine) -> None:
    stage = bring(engine, Status.DONE)
    assert engine.tasks.reopen(stage.task_id).ok
    finish(engine, stage.task_id, "second output")
    assert engine.tasks.reset(stage.task_id).ok
    answer = engine.work.complete(stage.task_id, stage.token, "output")
    assert answer == TransitionResult(ok=True, repeated=True, status="idle")
    assert reason(engine.work.complete(stage.task_id, stage.token, "x")) is Refusal.RESULT_CONFLICT
    assert engine.tasks.get(stage.task_id).status == "idle"


def test_reports_of_a_failed_attempt_are_stale_once_another_attempt_has_begun(
    engine: Engine,
) -> None:
    stage = bring(engine, Status.RUNNING)
    assert engine.work.fail(stage.task_id, stage.token, "broken").ok
    early = engine.work.complete(stage.task_id, stage.token, "output")
    assert reason(early) is Refusal.RESULT_CONFLICT
    assert engine.tasks.run_now(stage.task_id).ok
    take(engine, stage.task_id)
    for late in (
        engine.work.complete(stage.task_id, stage.token, "output"),
        engine.work.fail(stage.task_id, stage.token, "another reason"),
    ):
        assert reason(late) is Refusal.STALE_TOKEN
    assert engine.work.fail(stage.task_id, stage.token, "broken").repeated


def test_a_report_after_a_cancel_is_already_terminal(engine: Engine, store_url: str) -> None:
    stage = bring(engine, Status.CANCELLED)
    store = dump(store_url)
    assert reports(engine, stage) == [Refusal.ALREADY_TERMINAL] * 3 + [Refusal.CANCELLED]
    assert reason(engine.work.guard(stage.task_id, stage.token)) is Refusal.CANCELLED
    assert dump(store_url) == store


def test_a_cancelled_attempt_stays_cancelled_after_a_retry(engine: Engine) -> None:
    stage = bring(engine, Status.CANCELLED)
    assert engine.tasks.retry(stage.task_id).ok
    take(engine, stage.task_id)
    assert reports(engine, stage) == [Refusal.ALREADY_TERMINAL] * 3 + [Refusal.CANCELLED]
    assert reason(engine.work.guard(stage.task_id, stage.token)) is Refusal.CANCELLED
    assert engine.tasks.get(stage.task_id).status == "running"


def test_between_expiry_and_recovery_a_complete_is_accepted_but_guard_and_renew_are_not(
    engine: Engine, clock: ManualClock
) -> None:
    stage = bring(engine, Status.RUNNING)
    clock.advance(30)
    assert reason(engine.work.guard(stage.task_id, stage.token)) is Refusal.LEASE_EXPIRED
    assert reason(renew(engine, stage)) is Refusal.LEASE_EXPIRED
    assert engine.work.complete(stage.task_id, stage.token, "late but first").ok
    assert engine.tasks.get(stage.task_id).output == "late but first"
    assert engine.work.recover() == []


@pytest.mark.parametrize("ending", ["fail", "release"])
def test_between_expiry_and_recovery_a_failure_and_a_release_are_accepted_too(
    engine: Engine, clock: ManualClock, ending: str
) -> None:
    stage = bring(engine, Status.RUNNING)
    clock.advance(3600)
    answer = (
        engine.work.fail(stage.task_id, stage.token, "broken")
        if ending == "fail"
        else engine.work.release(stage.task_id, stage.token)
    )
    assert answer == TransitionResult(ok=True, status="queued")
    assert engine.tasks.get(stage.task_id).lost == 0


def test_once_recovery_requeued_the_task_every_report_is_stale(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    stage = bring(engine, Status.RUNNING)
    clock.advance(30)
    assert engine.work.recover()[0].status == "queued"
    store = dump(store_url)
    assert reports(engine, stage) == STALE
    lost = "attempt 1 has ended: its lease ran out; the task is queued again"
    assert renew(engine, stage).detail == lost
    assert reason(engine.work.guard(stage.task_id, stage.token)) is Refusal.LEASE_EXPIRED
    assert dump(store_url) == store


def test_a_lost_attempt_is_stale_while_the_next_one_runs_by_the_same_worker(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    stage = bring(engine, Status.RUNNING)
    clock.advance(30)
    engine.work.recover()
    second = take(engine, stage.task_id)
    store = dump(store_url)
    assert reports(engine, stage) == STALE
    lost = "attempt 1 has ended: its lease ran out; the task is now at attempt 2"
    assert renew(engine, stage).detail == lost
    assert reason(engine.work.guard(stage.task_id, stage.token)) is Refusal.ALREADY_CLAIMED
    assert dump(store_url) == store
    assert engine.work.complete(stage.task_id, second.token, "of the second").ok
    assert reports(engine, stage) == STALE


def test_an_attempt_lost_for_good_is_stale(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, retry=RetryPolicy(max_lost=1))
    token = take(engine, task_id).token
    clock.advance(30)
    assert engine.work.recover()[0].status == "failed"
    stage = Stage(task_id=task_id, token=token)
    assert reports(engine, stage) == STALE
    assert renew(engine, stage).detail.endswith(": its lease ran out; the task is now failed")
    assert engine.tasks.get(task_id).status == "failed"


def test_a_released_attempt_is_over(engine: Engine) -> None:
    stage = bring(engine, Status.QUEUED)
    assert reports(engine, stage) == [*STALE[:2], None, Refusal.STALE_TOKEN]
    assert engine.work.release(stage.task_id, stage.token).repeated
    assert reason(engine.work.guard(stage.task_id, stage.token)) is Refusal.LEASE_EXPIRED


def test_a_superseded_attempt_is_stale(engine: Engine, store_url: str) -> None:
    run = start(engine)
    run.finish("plan")
    work = run.take("work")
    assert engine.tasks.reopen(run.steps["plan"]).ok
    store = dump(store_url)
    stage = Stage(task_id=work.task.id, token=work.token)
    assert reports(engine, stage) == STALE
    assert renew(engine, stage).detail == "attempt 1 has ended; the task is queued again"
    assert dump(store_url) == store


def test_a_renewal_moves_the_expiry_and_keeps_what_was_told(
    engine: Engine, clock: ManualClock
) -> None:
    stage = bring(engine, Status.RUNNING)
    clock.advance(20)
    renewal = Renewal(
        task_id=stage.task_id, token=stage.token, progress="half", usage={"tokens": 5}
    )
    assert engine.work.renew([renewal], lease=60)[0].ok
    assert renew(engine, stage).ok
    task = engine.tasks.get(stage.task_id)
    assert task.lease is not None
    assert task.lease.expires_at == to_datetime(clock.now() + 30_000_000)
    assert (task.progress, task.usage, task.version) == ("half", {"tokens": 5}, 2)
    assert [event.type for event in engine.tasks.events(stage.task_id)] == [
        "task.created",
        "task.running",
    ]


def test_many_renewals_are_answered_one_by_one(engine: Engine) -> None:
    running, done = bring(engine, Status.RUNNING), bring(engine, Status.DONE)
    cancelled, queued = bring(engine, Status.CANCELLED), bring(engine, Status.QUEUED)
    stages = [running, done, cancelled, queued]
    answers = engine.work.renew([Renewal(task_id=s.task_id, token=s.token) for s in stages])
    assert [answer.reason for answer in answers] == [
        None,
        Refusal.ALREADY_TERMINAL,
        Refusal.CANCELLED,
        Refusal.STALE_TOKEN,
    ]
    assert engine.work.renew([]) == []
