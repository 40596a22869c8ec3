"""Groups of schedules: kept and steered, their ticks, and their end with the runs they go with."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Claim, Complete, Operation
from holdfast.engine.surroundings.schedules import (
    FireTicks,
    PauseSchedule,
    PutSchedule,
    RemoveSchedule,
    ResumeSchedule,
)
from holdfast.model.moment import to_datetime
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.chaos.plans.registry import group_of
from tests.race.surroundings.test_schedules import put, tick
from tests.race.worlds import HOUR, World

NIGHTLY = Workflow.define("nightly", (Step(id="fetch"),), concurrency=Concurrency(key="nightly"))


@group_of(PutSchedule)
def keep_one_schedule_and_replace_another(world: World) -> Sequence[Operation]:
    tick(world, "old")
    run = world.run(Step(id="only"))
    return [put(world, "new", run=run), put(world, "old", given=2)]


@group_of(PauseSchedule, ResumeSchedule, RemoveSchedule)
def steer_three_schedules(world: World) -> Sequence[Operation]:
    first, second, third = (put(world, name) for name in ("one", "two", "three"))
    for asked in (first, second, third):
        world.engine.commits.submit(asked).result()
    assert world.engine.schedules.pause(second.name).ok
    return [
        PauseSchedule(name=first.name),
        ResumeSchedule(name=second.name),
        RemoveSchedule(name=third.name),
    ]


@group_of(FireTicks, Claim)
def fire_ticks_of_tasks_and_of_runs_and_claim_the_first(world: World) -> Sequence[Operation]:
    starts = NewRun(workflow=NIGHTLY, input={"day": 3})
    kept = world.engine.schedules.put(NewSchedule(name="runs", cron="0 * * * *", starts=starts))
    due = tick(world)
    first = due.ticks[0]
    world.day.set(first + HOUR)
    assert kept.next_at == to_datetime(first)
    ticks = (first, first + HOUR)
    return [
        FireTicks(name=due.name, version=1, ticks=ticks, next_at=first + 2 * HOUR),
        FireTicks(name="runs", version=1, ticks=ticks, next_at=first + 2 * HOUR, problem="late"),
        world.claim("anna"),
    ]


@group_of(Complete, FireTicks)
def end_a_run_while_a_schedule_of_it_is_due(world: World) -> Sequence[Operation]:
    run = world.run(Step(id="only"))
    world.start("only")
    return [tick(world, run=run), world.complete("only")]
