"""Concurrency keys: their counters hold under every interleaving."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import Lose
from holdfast.model.run import CreateResult
from holdfast.model.workflow.graph import Step
from tests.race import scenarios
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World

ONE = (Step(id="one"),)
TWO = (Step(id="two"),)


def test_two_claims_share_the_one_place_of_a_key(stage: Stage) -> None:
    for outcome in stage.explore(scenarios.two_claims_of_a_key_with_one_place):
        assert str(outcome.state).count("task.running") == 1


@pytest.mark.parametrize("by_id", [False, True])
def test_a_start_is_recorded_only_by_who_holds_the_counter_of_its_key(
    stage: Stage, *, by_id: bool
) -> None:
    world = stage.world()
    limit = world.concurrency(1)
    for name in ("one", "two"):
        world.task(name, concurrency=limit)
    asked = world.claim_by_id("one", "anna") if by_id else world.claim("anna")
    recorded = stage.first.start_up_to("take_slots", [asked])
    late = stage.second.start([world.claim_by_id("two", "bert")])
    assert stage.second.go_as_far_as_possible(late)
    assert recorded.finish() != [[]]
    assert late.result() == [[]]


def test_two_claims_share_the_places_of_a_key_and_take_what_needs_none(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        limit = world.concurrency(2)
        for name in ("one", "two", "three"):
            world.task(name, concurrency=limit)
        world.task("free")
        return [world.claim("anna", 4)], [world.claim_by_id("three", "bert")]

    stage.explore(scenario)


def test_a_claim_against_the_end_of_the_task_that_holds_the_key(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        limit = world.concurrency(1)
        world.task("one", concurrency=limit)
        world.task("two", concurrency=limit)
        world.start("one")
        return [world.claim("anna")], [world.complete("one")]

    stage.explore(scenario)


def test_a_claim_against_cancel_of_the_task_that_holds_the_key(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        limit = world.concurrency(1)
        world.task("one", concurrency=limit)
        world.task("two", concurrency=limit)
        world.start("one")
        return [world.claim("anna")], [world.cancel("one")]

    stage.explore(scenario)


def test_a_claim_against_the_loss_of_the_task_that_holds_the_key(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        limit = world.concurrency(1)
        one = world.task("one", concurrency=limit)
        world.task("two", concurrency=limit)
        world.start("one")
        world.day.advance(31)
        return [world.claim("anna")], [Lose(task_id=one, fence=1)]

    stage.explore(scenario)


def test_two_workers_that_finish_and_claim_swap_their_keys(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        x, y = world.concurrency(1, "x"), world.concurrency(1, "y")
        for name, key in (("x0", x), ("y0", y), ("x1", x), ("y1", y)):
            world.task(name, concurrency=key)
        world.start("x0")
        world.start("y0")
        return (
            [world.complete("x0"), world.claim_by_id("x1", "anna")],
            [world.complete("y0"), world.claim_by_id("y1", "bert")],
        )

    stage.explore(scenario)


def test_one_of_two_runs_with_the_same_key_waits(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        return (
            [world.start_run(*ONE, limit=1, name="first")],
            [world.start_run(*TWO, limit=1, name="second")],
        )

    for outcome in stage.explore(scenario):
        assert ("run", "key", 1) in outcome.state


def test_a_run_that_starts_while_the_holder_of_its_key_ends_is_let_in(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*ONE, limit=1, name="first")
        world.start("one")
        return [world.complete("one")], [world.start_run(*TWO, limit=1, name="second")]

    for outcome in stage.explore(scenario):
        assert ("run", "key", 1) in outcome.state


def test_a_waiting_run_is_let_in_or_cancelled_when_the_holder_ends(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*ONE, limit=1, name="first")
        world.run(*TWO, limit=1, name="second")
        return [world.cancel("first")], [world.cancel("second")]

    for outcome in stage.explore(scenario):
        assert ("run", "key", 0) in outcome.state


def test_a_run_with_a_key_exists_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        return (
            [world.start_run(*ONE, key=f"once-{world.number}")],
            [world.start_run(*ONE, key=f"once-{world.number}")],
        )

    world = stage.world()
    first, second = scenario(world)
    stopped = stage.first.start_up_to("COMMIT", first)
    other = stage.second.start(second)
    assert stage.second.go_as_far_as_possible(other)
    (mine,) = stopped.finish()
    (yours,) = other.result()
    assert isinstance(mine, CreateResult)
    assert mine.created
    assert yours == CreateResult(id=mine.id, created=False)
