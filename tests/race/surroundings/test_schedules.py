"""Ticks under every interleaving: each is fired once, and none for a schedule that is gone."""

from __future__ import annotations

from typing import Any

from holdfast.engine.surroundings.schedules import (
    FireTicks,
    PauseSchedule,
    PutSchedule,
    RemoveSchedule,
    ResumeSchedule,
    check_new_schedule,
)
from holdfast.ids import Ids
from holdfast.model.result import Refusal
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Outcome, Plans, Stage, staged
from tests.race.worlds import HOUR, World


def put(world: World, name: str = "hourly", **fields: Any) -> PutSchedule:
    """Ask to keep a schedule; `given` is what it starts its tasks with."""
    own = f"{name}-{world.number}"
    task = NewTask(title="fired", step="fired", agent=world.agent, payload=fields.pop("given", 1))
    if "limit" in fields:
        task = NewTask(title="fired", step="fired", concurrency=fields.pop("limit"))
    schedule = NewSchedule(name=own, starts=task, **{"cron": "0 * * * *", **fields})
    ids = Ids(world.engine.clock, world.engine.randomness)
    asked = check_new_schedule(schedule, ids, max_payload=1_000, now=world.engine.now)
    world.schedules.setdefault(own, asked.next_at)
    return asked


def tick(world: World, name: str = "hourly", **fields: Any) -> FireTicks:
    """Keep a schedule, go on to its first tick, and ask to fire that."""
    asked = put(world, name, **fields)
    world.engine.commits.submit(asked).result()
    world.day.set(max(world.day.now(), asked.next_at))
    first = (asked.next_at,)
    return FireTicks(name=asked.name, version=1, ticks=first, next_at=asked.next_at + HOUR)


def named(world: World) -> dict[str, str]:
    return {"name": f"hourly-{world.number}"}


def begin(world: World) -> str:
    run = world.run(Step(id="only"))
    world.start("only")
    return run


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


def test_a_tick_against_what_stops_its_schedule(stage: Stage) -> None:
    def pause(world: World) -> Plans:
        return [tick(world)], [PauseSchedule(**named(world))]

    def remove(world: World) -> Plans:
        return [tick(world)], [RemoveSchedule(**named(world))]

    for scenario in (pause, remove):
        assert [fired(outcome) for outcome in stage.explore(scenario)] == [[[0]], [[]]]


def test_a_tick_against_another_definition_of_its_schedule(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        due = tick(world)
        return [due], [put(world, given=2)]

    before, after = stage.explore(scenario)
    assert (fired(before), fired(after)) == ([[0]], [[]])


def test_a_tick_against_the_end_of_the_run_its_schedule_goes_with(stage: Stage) -> None:
    def cancel(world: World) -> Plans:
        return [tick(world, run=begin(world))], [world.cancel("run")]

    def complete(world: World) -> Plans:
        return [tick(world, run=begin(world))], [world.complete("only")]

    for scenario in (cancel, complete):
        assert [fired(outcome) for outcome in stage.explore(scenario)] == [[[0]], [[]]]


def test_a_new_schedule_against_the_end_of_the_run_it_goes_with(stage: Stage) -> None:
    def cancel(world: World) -> Plans:
        return [put(world, run=begin(world))], [world.cancel("run")]

    def complete(world: World) -> Plans:
        return [put(world, run=begin(world))], [world.complete("only")]

    for scenario in (cancel, complete):
        kept, refused = stage.explore(scenario)
        assert (kept.first, refused.first) == (((1, 1),), ("InvalidInput",))


def test_a_schedule_and_a_counter_are_locked_in_one_order_when_a_run_ends(stage: Stage) -> None:
    """Who ends the run holds the counter and wants the schedule; the other, the other way."""

    def prepared(world: World) -> FireTicks:
        limit = world.concurrency(2)
        world.task("waiting", concurrency=limit)
        run = world.run(Step(id="only", concurrency=limit), name="old")
        world.start("only")
        return tick(world, run=run)

    def stays(world: World) -> Plans:
        return [prepared(world), world.claim("bert")], [world.complete("only")]

    def leaves(world: World) -> Plans:
        prepared(world)
        other = world.run(Step(id="next"), name="new")
        return [put(world, run=other), world.claim("bert")], [world.complete("only")]

    stage.explore(stays)
    stage.explore(leaves)


def test_a_schedule_that_was_given_to_a_run_meanwhile_is_locked_after_that_run(
    postgres_store_url: str,
) -> None:
    with staged(postgres_store_url) as stage:
        world = stage.world()
        limit = world.concurrency(2)
        world.task("waiting", concurrency=limit)
        run = world.run(Step(id="only", concurrency=limit))
        world.start("only")
        tick(world)
        pause = PauseSchedule(**named(world))
        pausing = stage.first.start_up_to("lock_schedules", [pause, world.claim("bert")])
        stage.third.perform([put(world, run=run)])
        end = stage.second.start_up_to("remove_schedules_of_runs", [world.complete("only")])
        pausing.gate.open()
        assert stage.first.go_as_far_as_possible(pausing.future)
        assert world.describe(end.finish()) == ((True, None, False, "done"),)
        answer, _ = world.describe(pausing.finish())
        assert answer == (False, Refusal.NOT_FOUND, False, None)


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
        assert world.engine.schedules.pause(**named(world)).ok
        return [ResumeSchedule(**named(world))], [put(world, cron="30 * * * *")]

    stage.explore(scenario)
