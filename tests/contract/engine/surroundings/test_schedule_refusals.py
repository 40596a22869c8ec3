"""Schedules at their edges: what is refused, what cannot be started, and how functions get one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from queue import Queue

import pytest

from holdfast import Holdfast, InvalidInput, NewRun, NewTask
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.cron_ticks import MissedTicks
from holdfast.model.schedule import Schedule
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.engine.input.bad_values import Refuse
from tests.contract.engine.surroundings.daily_schedule import (
    DAY,
    NINE,
    SUNDAY,
    daily,
    fired,
    keys,
    move_to,
)
from tests.contract.raw_store import drop_guards, raw
from tests.contract.task_states import MISSING_RUN

PATIENCE = 30
TICK = "schedule:daily:2025-06-16T09:00:00Z"

DAMAGE = {
    "b": "UPDATE holdfast_schedule SET template = '{\"odd\": 1}' WHERE name = 'b'",
    "c": "UPDATE holdfast_schedule SET template = 'nothing' WHERE name = 'c'",
    "d": "UPDATE holdfast_schedule SET template = replace(template, "
    "'\"max_attempts\": 3', '\"max_attempts\": -1') WHERE name = 'd'",
}
REASONS = {"b": "TypeError", "c": "JSONDecodeError", "d": "StoreError"}


def test_a_schedule_that_cannot_start_its_task_is_logged_and_holds_up_no_other(
    engine: Engine, clock: ManualClock, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", *DAMAGE, "e"):
        engine.schedules.put(daily(name=name))
    for statement in DAMAGE.values():
        with raw(store_url) as run:
            run(statement)
    move_to(clock, 1)
    with caplog.at_level(logging.WARNING, "holdfast.schedules"):
        engine.recovery.step()
    assert sorted(str(key)[:10] for key in keys(engine)) == ["schedule:a", "schedule:e"]
    for name, reason in REASONS.items():
        with raw(store_url) as run:
            (row,) = run("SELECT next_at, last_error FROM holdfast_schedule WHERE name = ?", name)
        assert row["next_at"] == SUNDAY + 2 * DAY + NINE
        assert row["last_error"].startswith(reason)
        assert f"schedule {name}: " in caplog.text


def test_a_key_that_somebody_else_took_is_told_and_forgotten_after_the_next_tick(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    engine.schedules.put(daily())
    engine.tasks.create(NewTask(title="other", payload="other", key="taken"))
    with raw(store_url) as run:
        run("UPDATE holdfast_task SET key = ?", TICK)
    move_to(clock, 1)
    engine.recovery.step()
    assert "KeyConflict" in str(engine.schedules.get("daily").last_error)
    move_to(clock, 2)
    engine.recovery.step()
    assert engine.schedules.get("daily").last_error is None
    assert len(fired(engine)) == 1


def test_a_schedule_whose_zone_is_gone_is_paused_and_says_why(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    engine.schedules.put(daily())
    with raw(store_url) as run:
        run("UPDATE holdfast_schedule SET zone = 'Atlantis/Center'")
    move_to(clock, 1)
    assert engine.recovery.step() == engine.settings.recovery
    kept = engine.schedules.get("daily")
    assert kept.paused
    assert "'Atlantis/Center' is not a time zone" in str(kept.last_error)
    with pytest.raises(InvalidInput, match="zone"):
        engine.schedules.resume("daily")


def test_nobody_can_take_the_key_of_a_tick(refuse: Refuse, engine: Engine) -> None:
    flow = Workflow.define("flow", (Step(id="only"),))
    for reserved in (TICK, "hook after r_1 5"):
        refuse("key", engine.tasks.create, NewTask(title="mine", key=reserved))
        refuse("key", engine.runs.start, NewRun(workflow=flow, key=reserved))


UNREADABLE = {
    "b": "cron = '61 * * * *'",
    "c": "cron = 'never'",
    "d": "missed = 'some'",
    "e": "zone = 'Atlantis/Center'",
    "f": "next_at = 0, cron = ''",
}


def test_a_schedule_that_cannot_be_read_is_paused_and_holds_up_no_other(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    for name in ("a", *UNREADABLE, "g"):
        engine.schedules.put(daily(name=name))
    with raw(store_url) as run:
        drop_guards(run)
        for name, change in UNREADABLE.items():
            run(f"UPDATE holdfast_schedule SET {change} WHERE name = ?", name)  # noqa: S608
    move_to(clock, 1)
    assert engine.recovery.step() == engine.settings.recovery
    assert sorted(str(key)[:10] for key in keys(engine)) == ["schedule:a", "schedule:g"]
    kept = {each.name: each for each in engine.schedules.list()}
    assert [name for name, each in kept.items() if each.paused] == [*UNREADABLE]
    assert "paused: InvalidInput: cron: '61 * * * *' is not a cron" in str(kept["b"].last_error)
    assert (kept["d"].missed, str(kept["d"].last_error)[:18]) == ("some", "paused: ValueError")
    for name in ("b", "c", "e", "f"):
        with pytest.raises(InvalidInput, match=r"cron|zone"):
            engine.schedules.resume(name)


def test_bad_schedules_are_refused_at_the_edge_and_nothing_is_written(
    engine: Engine, refuse: Callable[..., None]
) -> None:
    put = engine.schedules.put
    ended = MISSING_RUN
    refuse("schedule", put, "daily")
    for name in ("", "two words", "x" * 151, None):
        refuse("name", put, daily(name=name))
        refuse("name", engine.schedules.pause, name)
    for cron in ("", "nine", "0 9 * *", "99 9 * * *", "0 0 */40 2 2#5", None):
        refuse("cron", put, daily(cron=cron))
        refuse("cron", engine.schedules.preview, cron)
    refuse("zone", put, daily(zone="Moon/Base"))
    refuse("count", engine.schedules.preview, "0 9 * * *", "UTC", 0)
    refuse("missed", put, daily(missed="twice"))
    refuse("run", put, daily(run="r_1"))
    refuse("run", put, daily(run=ended))
    refuse("starts", put, daily(starts=None))
    refuse("payload", put, daily(starts=NewTask(title="t", payload=object())))
    for own in ({"key": "k"}, {"scheduled_for": "1h"}, {"needs": ("t",)}, {"parent": "t"}):
        refuse(next(iter(own)), put, daily(starts=NewTask(title="t", **own)))
    flow = Workflow.define("new", (Step(id="one"),))
    refuse("key", put, daily(starts=NewRun(workflow=flow, key="k")))
    refuse("run", put, daily(starts=NewRun(workflow=flow), run=ended))


async def by_await(hf: Holdfast) -> list[Schedule]:
    job = hf.task(name="job")(lambda: 1)
    assert not (await job.schedule.aio("job", "* * * * *")).paused
    assert (await hf.schedules.pause.aio("job")).ok
    assert (await hf.schedules.get.aio("job")).paused
    assert (await hf.schedules.remove.aio("job")).ok
    return await hf.schedules.list.aio()


def test_functions_and_workflows_are_scheduled_by_name_and_arguments(hf: Holdfast) -> None:
    @hf.task(agent="night")
    def clean(folder: str, keep: int = 3) -> str:
        return folder * keep

    flow = hf.workflow("flow")

    @flow.step
    def fetch(day: int) -> int:
        return day

    kept = clean.schedule("clean", "0 3 * * *", zone="Europe/Berlin", folder="old")
    assert (kept.task, kept.workflow, kept.input) == ("clean", None, {"folder": "old"})
    other = flow.schedule(name="flow", cron="*/5 * * * *", missed="skip", day=3)
    assert (other.task, other.workflow, other.missed) == (None, "flow", MissedTicks.SKIP)
    assert asyncio.run(by_await(hf)) == [kept, other]
    with pytest.raises(InvalidInput, match="missing a required argument: 'folder'"):
        clean.schedule("clean", "0 3 * * *")
    with pytest.raises(InvalidInput, match="day: is missing"):
        flow.schedule("flow", "0 3 * * *")


def test_a_worker_runs_what_a_tick_starts(hf: Holdfast) -> None:
    heard: Queue[str] = Queue()

    @hf.task
    def tell(word: str) -> None:
        heard.put(word)

    with hf.worker():
        tell.schedule("tell", "* * * * * *", word="now")
        assert heard.get(timeout=PATIENCE) == "now"
        assert hf.schedules.remove("tell").ok
