"""Two budgets per generation: reported failures that wait, and lost attempts that do not."""

from __future__ import annotations

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.moment import count_microseconds
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import Renewal
from holdfast.randomness import SeededRandomness
from tests.contract.task_states import create, finish, take
from tests.engines import opened


class FixedRandomness(SeededRandomness):
    """Draws the same jitter every time."""

    def __init__(self, jitter: float) -> None:
        super().__init__(0)
        self._jitter = jitter

    def random(self) -> float:
        return self._jitter


def fail(engine: Engine, task_id: str, *, retryable: bool = True) -> str | None:
    token = take(engine, task_id).token
    return engine.work.fail(task_id, token, "broken", retryable=retryable).status


def lose(engine: Engine, clock: ManualClock, task_id: str) -> str | None:
    take(engine, task_id)
    clock.advance(30)
    (answer,) = engine.work.recover()
    return answer.status


def test_a_task_fails_for_good_when_its_failures_reach_its_budget(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine, retry=RetryPolicy(max_attempts=3))
    for expected in ("queued", "queued", "failed"):
        assert fail(engine, task_id) == expected
        clock.advance(300)
    task = engine.tasks.get(task_id)
    assert (task.failures, task.attempt, task.error) == (3, 3, "broken")
    assert engine.work.claim("worker") == []


def test_a_failure_that_is_not_retryable_ends_the_task_at_once(engine: Engine) -> None:
    task_id = create(engine)
    assert fail(engine, task_id, retryable=False) == "failed"
    assert engine.tasks.get(task_id).failures == 1


def test_no_retry_starts_before_its_time(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, retry=RetryPolicy(backoff=10))
    fail(engine, task_id)
    scheduled = engine.tasks.get(task_id).scheduled_for
    assert scheduled is not None
    due = count_microseconds(scheduled)
    assert clock.now() < due < clock.now() + 10 * MICROSECONDS
    clock.set(due - 1)
    engine.recovery.step()
    assert engine.work.claim("worker") == []
    assert engine.work.claim_by_id(task_id, "worker") == []
    assert engine.tasks.get(task_id).state == "scheduled"
    clock.set(due)
    (assignment,) = engine.work.claim("worker")
    assert (assignment.task.id, assignment.attempt) == (task_id, 2)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1 - 2**-53])
def test_the_wait_doubles_up_to_its_limit_under_full_jitter(store_url: str, jitter: float) -> None:
    clock = ManualClock()
    policy = RetryPolicy(max_attempts=9, backoff=5, backoff_max=60)
    with opened(store_url, clock=clock, randomness=FixedRandomness(jitter)) as engine:
        task_id = create(engine, retry=policy)
        for number, longest in enumerate((5, 10, 20, 40, 60, 60, 60), start=1):
            assert fail(engine, task_id) == "queued"
            scheduled = engine.tasks.get(task_id).scheduled_for
            assert scheduled is not None
            waited = count_microseconds(scheduled) - clock.now()
            assert waited == int(longest * MICROSECONDS * jitter)
            assert waited == pytest.approx(policy.delay(number, jitter) * MICROSECONDS, abs=1)
            clock.set(count_microseconds(scheduled))


def test_a_long_row_of_failures_waits_no_longer_than_the_limit(
    engine: Engine, clock: ManualClock
) -> None:
    policy = RetryPolicy(max_attempts=1000, backoff=0.000_001, backoff_max=10 * 366 * 86_400)
    task_id = create(engine, retry=policy)
    for _ in range(70):
        assert fail(engine, task_id) == "queued"
        scheduled = engine.tasks.get(task_id).scheduled_for
        assert scheduled is not None
        waited = count_microseconds(scheduled) - clock.now()
        assert 0 <= waited <= 10 * 366 * 86_400 * MICROSECONDS
        engine.tasks.run_now(task_id)


def test_a_lost_attempt_is_due_at_once_and_costs_the_other_budget(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine, retry=RetryPolicy(max_attempts=1, max_lost=3))
    for expected in ("queued", "queued", "failed"):
        assert lose(engine, clock, task_id) == expected
    task = engine.tasks.get(task_id)
    assert (task.lost, task.failures, task.attempt) == (3, 0, 3)
    assert "lost" in str(task.error)
    assert [attempt.outcome for attempt in engine.tasks.attempts(task_id)] == ["lost"] * 3


def test_recovery_takes_only_what_has_expired(engine: Engine, clock: ManualClock) -> None:
    short, long = create(engine), create(engine)
    take(engine, short, lease=10)
    take(engine, long, lease=20)
    clock.advance(10 - 0.000_001)
    assert engine.work.recover() == []
    clock.advance(0.000_001)
    assert len(engine.work.recover()) == 1
    assert engine.tasks.get(short).status == "queued"
    assert engine.tasks.get(long).status == "running"


def test_a_renewal_in_time_keeps_recovery_away(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine)
    token = take(engine, task_id).token
    for _ in range(5):
        clock.advance(29)
        assert engine.work.renew([Renewal(task_id=task_id, token=token)])[0].ok
        engine.recovery.step()
    assert engine.tasks.get(task_id).status == "running"
    assert engine.tasks.get(task_id).version == 2


def test_a_release_costs_neither_budget_and_may_name_a_later_time(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine, retry=RetryPolicy(max_attempts=1, max_lost=1))
    for _ in range(4):
        token = take(engine, task_id).token
        assert engine.work.release(task_id, token).ok
    token = take(engine, task_id).token
    later = clock.now() + 7 * MICROSECONDS
    assert engine.work.release(task_id, token, until=later).ok
    task = engine.tasks.get(task_id)
    assert (task.failures, task.lost, task.attempt, task.state) == (0, 0, 5, "scheduled")
    assert engine.work.claim("worker") == []
    clock.set(later)
    assert engine.work.claim("worker")[0].attempt == 6


def test_a_retry_by_hand_renews_both_budgets_and_is_due_at_once(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine, retry=RetryPolicy(max_attempts=2, max_lost=2))
    lose(engine, clock, task_id)
    fail(engine, task_id)
    clock.advance(300)
    assert fail(engine, task_id) == "failed"
    assert engine.tasks.retry(task_id).ok
    task = engine.tasks.get(task_id)
    assert (task.failures, task.lost, task.attempt, task.state) == (0, 0, 3, "ready")
    assert lose(engine, clock, task_id) == "queued"
    assert fail(engine, task_id) == "queued"
    assert engine.tasks.get(task_id).attempt == 5


def test_a_success_after_failures_keeps_their_count(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine)
    fail(engine, task_id)
    clock.advance(300)
    finish(engine, task_id, "at last")
    task = engine.tasks.get(task_id)
    assert (task.status, task.failures, task.error, task.output) == ("done", 1, None, "at last")


def test_recovery_says_how_long_nothing_will_be_due(engine: Engine, clock: ManualClock) -> None:
    interval = engine.settings.recovery
    assert engine.recovery.step() == interval
    create(engine, scheduled_for=clock.now() + 200_000)
    assert engine.recovery.step() == pytest.approx(0.2)
    clock.advance(0.2)
    assert engine.recovery.step() == interval
    assert engine.work.claim("worker") != []
