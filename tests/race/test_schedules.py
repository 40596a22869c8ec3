"""Ticks under every interleaving: each is fired once, and none for a schedule that is gone."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.new_schedule import new_schedule
from holdfast.engine.operations import Operation, PutSchedule
from holdfast.engine.schedule_operations import (
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    SteerSchedule,
    Tick,
)
from holdfast.ids import Ids
from holdfast.model.graph import Step
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from tests.race.explorer import Outcome, Plans, Stage
from tests.race.worlds import HOUR, World

ONLY = Step(id="only")


def put(world: World, name: str = "hourly", **fields: Any) -> PutSchedule:
    """Ask to keep a schedule; `given` is what it starts its tasks with."""
    own = f"{name}-{world.number}"
    task = NewTask(title="fired", agent=world.agent, payload=fields.pop("given", 1))
    if "limit" in fields:
        task = NewTask(title="fired", concurrency=fields.pop("limit"))
    schedule = NewSchedule(name=own, starts=task, **{"cron": "0 * * * *", **fields})
    ids = Ids(world.engine.clock, world.engine.randomness)
    asked = new_schedule(schedule, ids, max_payload=1_000, now=world.engine.now)
    world.schedules.setdefault(own, asked.next_at)
    return asked


def tick(world: World, name: str = "hourly", **fields: Any) -> Tick:
    """Keep a schedule, go on to its first tick, and ask to fire that."""
    asked = put(world, name, **fields)
    world.engine.commits.submit(asked).result()
    world.day.set(max(world.day.now(), asked.next_at))
    first = (asked.next_at,)
    return Tick(name=asked.name, version=1, ticks=first, next_at=asked.next_at + HOUR)


def named(world: World, kind: type[SteerSchedule]) -> SteerSchedule:
    return kind(name=f"hourly-{world.number}")


def fired(outcome: Outcome) -> list[Any]:
    return [each[1] for each in outcome.state if isinstance(each, tuple) and each[0] == "hourly"]


def test_two_processes_that_look_at_once_fire_a_tick_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        due = tick(world)
        return [due], [due]

    first, second = stage.explore(scenario)
    assert fired(first) == fired(second) == [[0]]
    assert {first.first, second.first} == {((1, None),), ((0, None),)}


def test_ticks_of_two_schedules_asked_for_in_either_order(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        limit = world.concurrency(1)
        pair = [tick(world, name, limit=limit) for name in ("hourly", "other")]
        return [*pair, world.claim("anna")], [*reversed(pair), world.claim("bert")]

    for outcome in stage.explore(scenario):
        assert fired(outcome) == [[0]]


@pytest.mark.parametrize("kind", [PauseSchedule, RemoveSchedule])
def test_a_tick_against_what_stops_its_schedule(stage: Stage, kind: type[SteerSchedule]) -> None:
    def scenario(world: World) -> Plans:
        return [tick(world)], [named(world, kind)]

    assert [fired(outcome) for outcome in stage.explore(scenario)] == [[[0]], [[]]]


def test_a_tick_against_another_definition_of_its_schedule(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        due = tick(world)
        return [due], [put(world, given=2)]

    before, after = stage.explore(scenario)
    assert (fired(before), fired(after)) == ([[0]], [[]])


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_a_tick_against_the_end_of_the_run_its_schedule_goes_with(stage: Stage, end: str) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(ONLY)
        world.start("only")
        due = tick(world, run=run)
        return [due], [world.cancel("run") if end == "cancel" else world.complete("only")]

    assert [fired(outcome) for outcome in stage.explore(scenario)] == [[[0]], [[]]]


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_a_new_schedule_against_the_end_of_the_run_it_goes_with(stage: Stage, end: str) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(ONLY)
        world.start("only")
        asked = put(world, run=run)
        return [asked], [world.cancel("run") if end == "cancel" else world.complete("only")]

    kept, refused = stage.explore(scenario)
    assert (kept.first, refused.first) == (((1, 1),), ("InvalidInput",))


def test_a_schedule_that_leaves_a_run_against_the_end_of_that_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        limit = world.concurrency(1)
        world.task("key", concurrency=limit)
        run = world.run(ONLY, name="old")
        world.start("only")
        tick(world, run=run)
        end: list[Operation] = [world.complete("only"), world.claim("anna")]
        following = world.run(Step(id="next"), name="new")
        return [put(world, run=following), world.claim("bert")], end

    stage.explore(scenario)


def test_two_processes_that_declare_a_schedule_at_once(stage: Stage) -> None:
    def same(world: World) -> Plans:
        asked = put(world)
        return [asked, put(world, "other")], [put(world, "other"), asked]

    def another(world: World) -> Plans:
        return [put(world)], [put(world, given=2)]

    for outcome in stage.explore(same):
        assert outcome.first == outcome.second == ((1, 1), (1, 1))
    stage.explore(another)


def test_a_resume_against_other_times_of_its_schedule(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        tick(world)
        assert world.engine.schedules.pause(f"hourly-{world.number}").ok
        return [named(world, ResumeSchedule)], [put(world, cron="30 * * * *")]

    stage.explore(scenario)
