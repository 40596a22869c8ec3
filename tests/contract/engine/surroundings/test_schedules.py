"""Schedules: what is kept, what each tick starts, and what pause, resume and removal do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import NewRun, NewTask, NotFound, Refusal
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.cron_ticks import TICKS_AT_ONCE, MissedTicks
from holdfast.model.moment import to_datetime
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.store.group_commit.queue import GROUP_BYTES
from tests.contract.engine.surroundings.daily_schedule import (
    DAY,
    HOUR,
    NINE,
    SUNDAY,
    daily,
    fired,
    keys,
    move_to,
)
from tests.contract.task_states import start
from tests.engines import opened


def fire_once_and_remove(engine: Engine, clock: ManualClock) -> None:
    engine.schedules.put(daily())
    move_to(clock, 1)
    engine.recovery.step()
    assert engine.schedules.remove("daily").ok


def test_a_tick_starts_a_task_once_with_its_key_and_its_actor(
    engine: Engine, clock: ManualClock
) -> None:
    kept = engine.schedules.put(daily())
    assert (kept.next_at, kept.last_at, kept.paused) == (
        to_datetime(SUNDAY + DAY + NINE),
        None,
        False,
    )
    assert engine.recovery.step() == engine.settings.recovery
    move_to(clock, 1, NINE - 100_000)
    assert engine.recovery.step() == pytest.approx(0.1)
    assert fired(engine) == []
    move_to(clock, 1)
    for _ in range(2):
        engine.recovery.step()
    (task,) = fired(engine)
    assert (task.key, task.payload) == ("schedule:daily:2025-06-16T09:00:00Z", {"to": "all"})
    assert engine.tasks.events(task.id)[0].actor == "schedule:daily"
    after = engine.schedules.get("daily")
    times = (to_datetime(SUNDAY + 2 * DAY + NINE), to_datetime(SUNDAY + DAY + NINE))
    assert (after.next_at, after.last_at) == times


def test_a_tick_starts_a_run_of_the_workflow_as_it_was_put(
    engine: Engine, clock: ManualClock
) -> None:
    steps = (Step(id="one"), Step(id="two", needs=("one",)))
    flow = Workflow.define("flow", steps, concurrency=Concurrency(key="flow", limit=2))
    starts = NewRun(workflow=flow, input={"n": 3}, priority=5)
    engine.schedules.put(daily(starts=starts))
    move_to(clock, 1)
    engine.recovery.step()
    (run,) = engine.runs.list()
    assert (run.workflow, run.workflow_version) == ("flow", flow.version)
    assert (run.input, run.priority, run.concurrency_key) == ({"n": 3}, 5, "run:flow")
    assert run.key == "schedule:daily:2025-06-16T09:00:00Z"
    assert {task.step: task.blocked for task in engine.runs.tasks(run.id)} == {
        "one": False,
        "two": True,
    }


def test_the_task_of_every_tick_has_the_fields_of_the_scheduled_task(
    engine: Engine, clock: ManualClock
) -> None:
    limit = Concurrency(key="mail", limit=3)
    starts = NewTask(
        title="report", agent="mailer", tags=("big",), priority=4, timeout=60.0, concurrency=limit
    )
    engine.schedules.put(daily(starts=starts))
    wanted = engine.tasks.get(engine.tasks.create(replace(starts, title="model")).id)
    move_to(clock, 1)
    engine.recovery.step()
    (task,) = fired(engine)
    for name in ("agent", "tags", "priority", "timeout", "concurrency_key", "retry", "status"):
        assert getattr(task, name) == getattr(wanted, name)


def test_missed_ticks_are_fired_as_the_policy_of_the_schedule_says(
    engine: Engine, clock: ManualClock
) -> None:
    days = {"skip": ["19"], "one": ["18", "19"], "all": ["16", "17", "18", "19"]}
    for missed in days:
        engine.schedules.put(daily(name=missed, missed=missed))
    move_to(clock, 3, NINE + HOUR)
    for _ in range(2):
        engine.recovery.step()
    assert {each.next_at for each in engine.schedules.list()} == {
        to_datetime(SUNDAY + 4 * DAY + NINE)
    }
    assert [each.name for each in engine.schedules.list()] == ["all", "one", "skip"]
    assert [each.name for each in engine.schedules.list(limit=1, after="all")] == ["one"]
    move_to(clock, 4)
    engine.recovery.step()
    for missed, expected in days.items():
        found = [str(key) for key in keys(engine) if str(key).startswith(f"schedule:{missed}:")]
        assert found == [f"schedule:{missed}:2025-06-{day}T09:00:00Z" for day in expected]


def test_many_missed_ticks_are_fired_in_order_over_several_commits(
    engine: Engine, clock: ManualClock
) -> None:
    engine.schedules.put(daily(cron="* * * * *", missed="all"))
    begun = clock.now()
    clock.advance(60 * 2 * TICKS_AT_ONCE)
    assert engine.recovery.step() <= 0.001
    assert len(fired(engine)) == TICKS_AT_ONCE
    engine.recovery.step()
    found = keys(engine)
    assert found == sorted(set(found), key=str)
    assert len(found) == (clock.now() // (60 * MICROSECONDS)) - begun // (60 * MICROSECONDS)


def test_large_ticks_are_fired_as_many_at_a_time_as_fit_in_a_commit(
    sqlite_url: str, clock: ManualClock
) -> None:
    with opened(sqlite_url, clock=clock) as engine:
        large = NewTask(title="report", payload="x" * (GROUP_BYTES // 20))
        engine.schedules.put(daily(cron="* * * * *", missed="all", starts=large))
        clock.advance(60 * 30)
        for number in (19, 30):
            engine.recovery.step()
            assert len(fired(engine)) == number


def test_ticks_are_fired_in_order_however_the_clock_moves(sqlite_url: str) -> None:
    clock = ManualClock()
    moves = st.lists(st.integers(-7_200, 20_000), max_size=12)
    numbers = count()
    with opened(sqlite_url, clock=clock) as engine:

        @settings(max_examples=25)
        @given(moves, st.sampled_from(MissedTicks))
        def play(seconds: list[int], missed: MissedTicks) -> None:
            name = f"s{next(numbers)}"
            engine.schedules.put(daily(name=name, cron="*/20 * * * *", missed=missed))
            for each in seconds:
                clock.set(clock.now() + each * MICROSECONDS)
                engine.recovery.step()
            found = [key for key in keys(engine) if str(key).startswith(f"schedule:{name}:")]
            assert found == sorted(found, key=str)
            assert engine.schedules.remove(name).ok

        play()


def test_a_clock_that_goes_back_fires_no_tick_again(engine: Engine, clock: ManualClock) -> None:
    engine.schedules.put(daily())
    for day in (1, 0, 1, 2, 1, 2):
        move_to(clock, day)
        engine.recovery.step()
    assert [str(key)[-20:-10] for key in keys(engine)] == ["2025-06-16", "2025-06-17"]


def test_a_tick_that_was_fired_before_a_clock_went_back_is_not_fired_by_its_successor(
    engine: Engine, clock: ManualClock
) -> None:
    fire_once_and_remove(engine, clock)
    move_to(clock, 0)
    engine.schedules.put(daily())
    move_to(clock, 1)
    engine.recovery.step()
    assert len(fired(engine)) == 1
    assert engine.schedules.get("daily").last_error is None


def test_the_same_schedule_again_is_left_alone(engine: Engine, clock: ManualClock) -> None:
    first = engine.schedules.put(daily())
    move_to(clock, 1, NINE + HOUR)
    assert engine.schedules.put(daily()) == first
    assert engine.schedules.put(daily(cron="0  9 * * *")) == first
    assert engine.schedules.list() == [first]


def test_another_definition_replaces_the_first_and_waits_for_the_same_tick(
    engine: Engine, clock: ManualClock
) -> None:
    others: list[dict[str, Any]] = [
        {"missed": "all"},
        {"starts": NewTask(title="other", payload={"to": "all"})},
        {"starts": NewTask(title="report", payload={"to": "you"})},
        {"starts": NewTask(title="report", payload={"to": "all"}, priority=1)},
        {"starts": NewRun(workflow=Workflow.define("flow", (Step(id="one"),)))},
        {"run": start(engine).id},
    ]
    first = engine.schedules.put(daily())
    move_to(clock, 1, NINE + HOUR)
    for version, changes in enumerate(others, start=2):
        replaced = engine.schedules.put(daily(**changes))
        assert (replaced.next_at, replaced.version) == (first.next_at, version)
        assert engine.schedules.put(daily(**changes)) == replaced


def test_a_schedule_given_other_times_reckons_its_ticks_anew_from_now(
    engine: Engine, clock: ManualClock
) -> None:
    engine.schedules.put(daily())
    move_to(clock, 3, 12 * HOUR)
    others = ({"cron": "0 10 * * *"}, {"cron": "0 10 * * *", "zone": "Europe/Berlin"})
    for changes, hour in zip(others, (10, 8), strict=True):
        upcoming = to_datetime(SUNDAY + 4 * DAY + hour * HOUR)
        assert engine.schedules.put(daily(**changes)).next_at == upcoming
    engine.recovery.step()
    assert fired(engine) == []


def test_ticks_of_a_pause_are_not_made_up_for(engine: Engine, clock: ManualClock) -> None:
    engine.schedules.put(daily(missed="all"))
    assert engine.schedules.pause("daily").ok
    assert engine.schedules.pause("daily").repeated
    move_to(clock, 3)
    engine.recovery.step()
    assert engine.schedules.get("daily").paused
    replaced = engine.schedules.put(daily(cron="0 8 * * *"))
    assert replaced.paused, "declaring it again does not resume it"
    assert engine.schedules.resume("daily").ok
    assert engine.schedules.resume("daily").repeated
    assert fired(engine) == []
    move_to(clock, 4, 8 * HOUR)
    engine.recovery.step()
    assert keys(engine) == ["schedule:daily:2025-06-19T08:00:00Z"]


def test_a_removed_schedule_fires_no_more_and_what_it_started_stays(
    engine: Engine, clock: ManualClock
) -> None:
    fire_once_and_remove(engine, clock)
    move_to(clock, 2)
    engine.recovery.step()
    assert len(fired(engine)) == 1
    with pytest.raises(NotFound, match="daily: there is no such schedule in this store"):
        engine.schedules.get("daily")
    steers = (engine.schedules.pause, engine.schedules.resume, engine.schedules.remove)
    for answer in (steer("daily") for steer in steers):
        assert answer.reason is Refusal.NOT_FOUND
        assert answer.detail == "there is no schedule 'daily'"


def test_a_preview_tells_the_next_ticks_in_local_time(sqlite_url: str) -> None:
    clock = ManualClock(int(datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()) * MICROSECONDS)
    with opened(sqlite_url, clock=clock) as engine:
        ticks = engine.schedules.preview("30 2 * * *", "Europe/Berlin", 2)
    assert [each.isoformat() for each in ticks] == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_what_a_tick_starts_has_the_labels_of_the_schedule(
    engine: Engine, clock: ManualClock
) -> None:
    flow = Workflow.define("flow", (Step(id="one"),))
    engine.schedules.put(replace(daily(), starts=NewTask(title="mail", labels={"team": "a"})))
    run = NewRun(workflow=flow, labels={"team": "b"})
    engine.schedules.put(replace(daily(), name="runs", starts=run))
    move_to(clock, 1)
    for _ in range(2):
        engine.recovery.step()
    assert [each.title for each in engine.tasks.list(labels={"team": "a"})] == ["mail"]
    assert [each.workflow for each in engine.runs.list(labels={"team": "b"})] == ["flow"]
