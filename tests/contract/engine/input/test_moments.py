"""When a task may start and a hold lifts: moments as people write them, by the database's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast import Holdfast
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.moment import to_datetime
from holdfast.model.task import Assignment, NewTask
from holdfast.model.units import Moment
from tests.contract.task_states import create, take

START = 1_750_000_000 * MICROSECONDS
SOON = datetime(2025, 6, 15, 17, 6, 41, 5, tzinfo=timezone(timedelta(hours=2)))
FORMS: list[tuple[Moment, int]] = [
    (SOON, START + MICROSECONDS + 5),
    (datetime.fromtimestamp(1_750_000_001, UTC), START + MICROSECONDS),
    (START + 7, START + 7),
    ("2025-06-15T17:06:41.000005+02:00", START + MICROSECONDS + 5),
    ("2025-06-15T15:06:41Z", START + MICROSECONDS),
    ("2s", START + 2 * MICROSECONDS),
    ("1h30m", START + 5400 * MICROSECONDS),
    (timedelta(milliseconds=1), START + 1000),
]


@pytest.mark.parametrize(("given", "kept"), FORMS)
def test_a_time_is_kept_in_microseconds_however_it_was_written(
    engine: Engine, given: Moment, kept: int
) -> None:
    task_id = create(engine, scheduled_for=given)
    assert engine.tasks.get(task_id).scheduled_for == to_datetime(kept)
    assert engine.tasks.edit(task_id, {"scheduled_for": None}).ok
    assert engine.tasks.edit(task_id, {"scheduled_for": given}).ok
    assert engine.tasks.get(task_id).scheduled_for == to_datetime(kept)


def test_a_hold_and_a_release_take_a_duration_too(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine)
    assert engine.tasks.hold(task_id, "limit", until="2h").ok
    assert "lifts in 2h" in str(engine.why(task_id))
    assert engine.tasks.unhold(task_id, "limit").ok
    token = take(engine, task_id).token
    clock.advance(1)
    assert engine.work.release(task_id, token, until=timedelta(seconds=10)).ok
    assert engine.tasks.get(task_id).scheduled_for == to_datetime(START + 11 * MICROSECONDS)


def test_the_same_key_gives_back_the_same_task_whenever_it_was_to_be_due(
    engine: Engine, clock: ManualClock
) -> None:
    first = engine.tasks.create(NewTask(title="later", key="k", scheduled_for="5m"))
    clock.advance(60)
    again = engine.tasks.create(NewTask(title="later", key="k", scheduled_for=timedelta(minutes=5)))
    assert (again.id, again.created) == (first.id, False)
    assert engine.tasks.create(NewTask(title="later", key="k", scheduled_for="6m")).id == first.id
    assert engine.tasks.get(first.id).scheduled_for == to_datetime(START + 300 * MICROSECONDS)
    dated = engine.tasks.create(NewTask(title="later", key="d", scheduled_for=SOON))
    same = engine.tasks.create(NewTask(title="later", key="d", scheduled_for=SOON.isoformat()))
    assert (same.id, same.created) == (dated.id, False)


@pytest.mark.parametrize("given", [1_750_000_000, 1_750_000_000_000, 1_750_000_000.5])
def test_a_number_of_seconds_or_milliseconds_is_refused_and_the_unit_named(
    engine: Engine, given: int
) -> None:
    with pytest.raises(InvalidInput, match=r"^scheduled_for: .*microseconds since 1970.*'2s'"):
        create(engine, scheduled_for=given)


def test_a_time_without_a_zone_is_refused(engine: Engine) -> None:
    for given in (SOON.replace(tzinfo=None), "2026-12-01", "2026-12-01T04:00"):
        with pytest.raises(InvalidInput, match=r"^scheduled_for: 20.* has no time zone; .*'2s'"):
            create(engine, scheduled_for=given)


def test_a_function_is_enqueued_for_later(hf: Holdfast) -> None:
    @hf.task
    def job() -> None: ...

    task = hf.tasks.get(job.using(scheduled_for="1h").enqueue().id)
    assert task.state == "scheduled"
    assert task.scheduled_for is not None
    assert abs(task.scheduled_for - task.created_at - timedelta(hours=1)) < timedelta(minutes=1)


@pytest.mark.parametrize("given", ["tomorrow", "2026-13-01", "noon"])
def test_a_text_that_is_no_duration_is_told_the_forms_of_a_moment(
    engine: Engine, given: str
) -> None:
    told = rf"^scheduled_for: '{given}' is not a time; pass a datetime with a time zone.*'2s'"
    with pytest.raises(InvalidInput, match=told):
        create(engine, scheduled_for=given)


@pytest.mark.parametrize("named", [False, True])
def test_a_task_whose_time_had_come_waits_again_when_the_clock_is_set_back(
    engine: Engine, clock: ManualClock, *, named: bool
) -> None:
    task_id = create(engine, scheduled_for="10s")
    clock.advance(10)
    engine.recovery.step()
    assert engine.tasks.get(task_id).due
    clock.set(START + 5 * MICROSECONDS)

    def claim() -> list[Assignment]:
        if named:
            return engine.work.claim_by_id(task_id, "worker", agents=["default"])
        return engine.work.claim("worker")

    assert claim() == []
    assert [clause.name for clause in engine.why(task_id).clauses if not clause.ok] == ["due"]
    assert "its time comes in 5s" in str(engine.why(task_id))
    clock.set(START + 10 * MICROSECONDS)
    assert [each.task.id for each in claim()] == [task_id]
