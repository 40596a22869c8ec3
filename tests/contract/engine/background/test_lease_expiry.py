"""Leases that were taken while the clock stood ahead last as long as they were granted for."""

from __future__ import annotations

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from holdfast.model.task import Assignment, Renewal
from holdfast.settings import DAY
from tests.contract.task_states import create

LEASE = 30


def shift(clock: ManualClock, seconds: float) -> None:
    clock.set(clock.now() + round(seconds * MICROSECONDS))


def claim(engine: Engine) -> Assignment:
    create(engine)
    (assignment,) = engine.work.claim("worker", lease=LEASE)
    return assignment


def renew(engine: Engine, assignment: Assignment) -> bool:
    (told,) = engine.work.renew(
        [Renewal(task_id=assignment.task_id, token=assignment.token)], lease=LEASE
    )
    return told.ok


def status(engine: Engine, assignment: Assignment) -> Status:
    return engine.tasks.get(assignment.task_id).status


@pytest.mark.parametrize("ahead", [10, DAY])
def test_a_lease_taken_ahead_of_time_ends_in_its_own_time_once_the_clock_is_right(
    engine: Engine, clock: ManualClock, ahead: float
) -> None:
    shift(clock, ahead)
    lost = claim(engine)
    shift(clock, -ahead)
    engine.work.recover()
    assert status(engine, lost) == "running"
    clock.advance(LEASE)
    engine.work.recover()
    assert status(engine, lost) == "queued"
    assert engine.tasks.get(lost.task_id).lost == 1
    assert engine.work.claim("another", lease=LEASE)[0].attempt == 2


def test_a_lease_renewed_ahead_of_time_ends_in_its_own_time_too(
    engine: Engine, clock: ManualClock
) -> None:
    lost = claim(engine)
    clock.advance(LEASE / 3)
    shift(clock, LEASE / 3)
    assert renew(engine, lost)
    shift(clock, -LEASE / 3 - DAY)
    engine.work.recover()
    clock.advance(LEASE - 1)
    engine.work.recover()
    assert status(engine, lost) == "running"
    clock.advance(1)
    engine.work.recover()
    assert status(engine, lost) == "queued"


def test_a_worker_that_lives_keeps_its_attempt_while_the_clock_is_set_back(
    engine: Engine, clock: ManualClock
) -> None:
    shift(clock, DAY)
    kept = claim(engine)
    shift(clock, -DAY)
    for _ in range(4):
        engine.work.recover()
        clock.advance(LEASE * 2 / 3)
        assert renew(engine, kept)
    engine.work.recover()
    assert engine.tasks.get(kept.task_id).attempt == 1
    assert engine.work.complete(kept.task_id, kept.token, "done").ok


def test_a_renewal_alone_puts_a_lease_right(engine: Engine, clock: ManualClock) -> None:
    shift(clock, DAY)
    lost = claim(engine)
    shift(clock, -DAY)
    assert renew(engine, lost)
    clock.advance(LEASE)
    engine.work.recover()
    assert status(engine, lost) == "queued"


def test_a_lease_taken_before_the_clock_jumped_there_and_back_is_as_it_was(
    engine: Engine, clock: ManualClock
) -> None:
    kept = claim(engine)
    before = engine.tasks.get(kept.task_id).lease
    shift(clock, DAY)
    shift(clock, -DAY)
    engine.work.recover()
    assert engine.tasks.get(kept.task_id).lease == before
    assert engine.doctor().ok


def test_leases_are_shortened_once_and_only_those_from_ahead(
    engine: Engine, clock: ManualClock
) -> None:
    before = claim(engine)
    shift(clock, DAY)
    first, second = claim(engine), claim(engine)
    shift(clock, -DAY)
    leases = {each.task_id: engine.tasks.get(each.task_id).lease for each in (before, second)}
    named = [before.task_id, first.task_id]

    def shorten() -> list[str]:
        rows = engine.database.transact(lambda tx: tx.write("shorten_leases", ids=named))
        return [row["id"] for row in rows]

    assert shorten() == [first.task_id]
    assert shorten() == []
    assert {each: engine.tasks.get(each).lease for each in leases} == leases


def test_a_named_lease_taken_ahead_of_time_ends_in_its_own_time(
    engine: Engine, clock: ManualClock
) -> None:
    shift(clock, DAY)
    assert engine.leases.acquire("branch", "ada", ttl=10)
    kept = engine.leases.acquire("relay", "ada", ttl=10)
    other = engine.leases.acquire("other", "ada", ttl=10)
    assert kept is not None
    assert other is not None
    shift(clock, -DAY)
    for key in ("branch", "relay"):
        assert engine.leases.acquire(key, "bob", ttl=10) is None
    clock.advance(9)
    assert engine.leases.renew("relay", kept.token, ttl=10).ok
    clock.advance(1)
    assert engine.leases.acquire("branch", "bob", ttl=10)
    assert engine.leases.acquire("relay", "bob", ttl=10) is None
    # Nobody has asked for it: its holder has it still.
    assert engine.leases.release("other", other.token).ok
