"""What schedules write is guarded statement by statement: version, time, and the run they go with.

A schedule that goes with a run is gone when that run is, however it ends.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.core.operation import Complete
from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.schedules import FireTicks
from holdfast.errors import InvalidInput
from holdfast.model.moment import count_microseconds, to_datetime
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.model.text import digest
from tests.contract.raw_store import raw
from tests.contract.single_statements import keep
from tests.contract.task_states import MISSING_RUN, StartedRun, start

HOUR = 3_600 * MICROSECONDS


def put(engine: Engine, name: str = "hourly", **fields: Any) -> int:
    """Keep a schedule; the answer is the tick it waits for."""
    task = NewTask(title="fired", payload=name)
    given = {"cron": "0 * * * *", "starts": task, **fields}
    kept = engine.schedules.put(NewSchedule(name=name, **given))
    assert kept.next_at is not None
    return count_microseconds(kept.next_at)


def move(engine: Engine, name: str = "hourly", version: int = 1) -> bool:
    """Move a schedule on by an hour, and fire nothing."""
    known = engine.schedules.get(name)
    upcoming = None if known.next_at is None else count_microseconds(known.next_at)
    rows = [(name, version, upcoming, (upcoming or 0) + HOUR, None)]
    return keep(engine, "fire_schedules", rows=rows) != []


def names(engine: Engine) -> list[str]:
    return [schedule.name for schedule in engine.schedules.list()]


def insert(engine: Engine, name: str, body: str, owner: str | None) -> bool:
    row = (name, "0 * * * *", "UTC", "one", None, None, '{"step":null,"title":"t"}', "1", owner)
    return keep(engine, "put_schedules", rows=[(*row, body, 5)]) != []


def test_only_a_due_schedule_is_moved_on_and_only_from_the_version_it_has(
    engine: Engine, clock: ManualClock
) -> None:
    clock.set(put(engine) - 1)
    put(engine, "other")
    assert not move(engine)
    clock.advance(0.000_001)
    for version in (0, 2):
        assert not move(engine, version=version)
    before = engine.schedules.get("other")
    assert move(engine)
    assert engine.schedules.get("other") == before
    clock.advance(3_600)
    assert not move(engine)
    assert move(engine, version=2)
    clock.advance(3_600)
    assert engine.schedules.pause("hourly").ok
    assert not move(engine, version=4)


def test_a_tick_that_comes_with_the_end_of_its_run_is_not_fired(
    engine: Engine, clock: ManualClock
) -> None:
    run, other = start(engine), start(engine)
    run.finish("plan", "work")
    attempt = run.take("review")
    tick = put(engine, run=run.id)
    put(engine, "other", run=other.id)
    clock.set(tick)
    task_id, output = run.steps["review"], '"done"'
    end = Complete(task_id=task_id, fence=attempt.attempt, output=output, digest=digest(output))
    ticks = [
        FireTicks(name=name, version=1, ticks=(tick,), next_at=tick + HOUR)
        for name in ("hourly", "other")
    ]
    replies = [future.result() for future in engine.commits.submit_many([end, *ticks])]
    assert replies[0].ok
    assert (len(replies[1].started), len(replies[2].started)) == (0, 1)
    assert names(engine) == ["other"]


def test_a_schedule_that_an_older_release_left_behind_is_not_fired_but_removed(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    run = start(engine)
    clock.set(put(engine, run=run.id))
    put(engine, "own")
    kept = engine.schedules.get("hourly")
    assert engine.runs.cancel(run.id).ok
    assert kept.next_at is not None
    row = (kept.name, kept.cron, kept.zone, run.id, count_microseconds(kept.next_at))
    with raw(store_url) as write:
        write(
            "INSERT INTO holdfast_schedule (name, cron, zone, run_id, next_at, missed, template, "
            "input, body_digest, created_at) VALUES (?, ?, ?, ?, ?, 'one', '{\"step\":null,"
            "\"title\":\"t\"}', '1', '', 5)",
            *row,
        )
    assert not move(engine)
    assert not engine.doctor().ok
    engine.recovery.step()
    assert names(engine) == ["own"]
    assert engine.tasks.list(status="queued") == []


def complete(run: StartedRun) -> None:
    run.finish("plan", "work", "review")


def fail(run: StartedRun) -> None:
    run.break_for_good("plan")


def cancel(run: StartedRun) -> None:
    assert run.engine.runs.cancel(run.id).ok


def cancel_a_task(run: StartedRun) -> None:
    assert run.engine.tasks.cancel(run.steps["plan"]).ok


def test_a_schedule_ends_with_its_run_however_that_ends(engine: Engine, clock: ManualClock) -> None:
    ends = (complete, fail, cancel, cancel_a_task)
    runs = [start(engine) for _ in (*ends, None)]
    for number, run in enumerate(runs):
        for name in (f"one-{number}", f"two-{number}"):
            put(engine, name, run=run.id)
    put(engine, "own")
    for number, (end, run) in enumerate(zip(ends, runs, strict=False)):
        assert f"one-{number}" in names(engine)
        end(run)
        assert run.status != "running"
        assert not {f"one-{number}", f"two-{number}"} & set(names(engine))
    assert names(engine) == ["one-4", "own", "two-4"]
    clock.advance(3_600)
    engine.recovery.step()
    fired = [task.payload for task in engine.tasks.list() if task.title == "fired"]
    assert sorted(fired) == names(engine)


def test_a_schedule_is_kept_only_for_a_run_that_is_open(engine: Engine) -> None:
    ended, running = start(engine), start(engine)
    assert engine.runs.cancel(ended.id).ok
    for owner in (ended.id, MISSING_RUN):
        assert not insert(engine, "new", "body", owner)
    with pytest.raises(InvalidInput, match=f"^run: {ended.id} has ended: it is cancelled"):
        put(engine, run=ended.id)
    assert insert(engine, "new", "body", running.id)
    assert insert(engine, "free", "body", None)


def test_only_a_schedule_that_says_something_else_is_replaced(engine: Engine) -> None:
    assert insert(engine, "one", "body", None)
    assert insert(engine, "two", "body", None)
    assert not insert(engine, "one", "body", None)
    assert insert(engine, "one", "other body", None)
    assert [schedule.version for schedule in engine.schedules.list()] == [2, 1]


def test_a_schedule_is_steered_by_its_name_alone(engine: Engine) -> None:
    for name in ("one", "two"):
        put(engine, name)
    before = engine.schedules.get("two")
    assert keep(engine, "pause_schedule", name="one") != []
    assert keep(engine, "pause_schedule", name="one") == []
    note = [("one", "broken")]
    engine.database.transact(lambda tx: tx.run("note_schedule_errors", rows=note))
    assert engine.schedules.get("one").last_error == "broken"
    assert engine.schedules.get("two") == before
    assert engine.schedules.pause("two").ok
    assert keep(engine, "resume_schedule", name="one", from_version=1, upcoming=7) == []
    assert keep(engine, "resume_schedule", name="one", from_version=2, upcoming=7) != []
    assert keep(engine, "resume_schedule", name="one", from_version=3, upcoming=9) == []
    assert engine.schedules.get("one").next_at == to_datetime(7)
    assert engine.schedules.get("two").paused
    assert keep(engine, "remove_schedule", name="one") != []
    assert names(engine) == ["two"]
