"""Groups that want the same rows in opposite order: they take turns, and none is a victim."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import ReopenTask
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Scenario, staged
from tests.race.worlds import World


def completions_against_cancels_of_their_runs(world: World) -> Plans:
    world.run(Step(id="a1"), Step(id="a2"), name="a")
    world.run(Step(id="b1"), Step(id="b2"), name="b")
    for name in ("a1", "a2", "b1", "b2"):
        world.start(name)
    return (
        [world.complete("a1"), world.complete("b1"), world.complete("a2")],
        [world.cancel("b"), world.cancel("a")],
    )


def completions_in_opposite_order(world: World) -> Plans:
    for name in ("a", "b"):
        world.task(name)
        world.start(name)
    return (
        [world.complete("a"), world.complete("b")],
        [world.complete("b"), world.complete("a")],
    )


def cancels_and_claims_by_id_crosswise(world: World) -> Plans:
    world.task("a")
    world.task("b")
    return (
        [world.cancel("a"), world.claim_by_id("b", "anna")],
        [world.cancel("b"), world.claim_by_id("a", "bert")],
    )


def claims_that_take_keys_crosswise(world: World) -> Plans:
    x, y = world.concurrency(2, "x"), world.concurrency(2, "y")
    for name, key in (("x1", x), ("y1", y), ("x2", x), ("y2", y)):
        world.task(name, concurrency=key)
    return (
        [world.claim_by_id("x1", "anna"), world.claim_by_id("y2", "anna")],
        [world.claim_by_id("y1", "bert"), world.claim_by_id("x2", "bert")],
    )


def completions_and_claims_that_swap_keys(world: World) -> Plans:
    x, y = world.concurrency(2, "x"), world.concurrency(2, "y")
    for name, key in (("x1", x), ("y1", y), ("x2", x), ("y2", y)):
        world.task(name, concurrency=key)
    world.start("x1")
    world.start("y1")
    return (
        [world.complete("x1"), world.claim_by_id("y2", "anna")],
        [world.complete("y1"), world.claim_by_id("x2", "bert")],
    )


def new_tasks_with_keys_crosswise(world: World) -> Plans:
    keys = [f"key-{world.number}-{letter}" for letter in "ab"]
    return (
        [world.create("a", key=keys[0]), world.create("b", key=keys[1])],
        [world.create("b", key=keys[1]), world.create("a", key=keys[0])],
    )


def completions_and_new_needs_crosswise(world: World) -> Plans:
    for name in ("a", "b"):
        world.task(name)
        world.start(name)
    return (
        [world.complete("a"), world.create("needs_b", "b")],
        [world.complete("b"), world.create("needs_a", "a")],
    )


def cancel_of_a_tree_against_completions_in_it(world: World) -> Plans:
    top = world.task("top", enqueue=False)
    for name in ("c", "b", "a"):
        world.task(name, parent=top)
        world.start(name)
    return [world.cancel("top")], [world.complete("a"), world.complete("b"), world.complete("c")]


def a_reopening_against_completions_far_down(world: World) -> Plans:
    top = world.task("top")
    world.task("middle", "top")
    world.task("bottom", "middle")
    world.task("other")
    world.finish("top")
    world.finish("middle")
    world.start("bottom")
    world.start("other")
    again = ReopenTask(task_id=top, actor="user")
    return [again], [world.complete("bottom"), world.complete("other")]


@pytest.mark.parametrize(
    "scenario",
    [
        completions_against_cancels_of_their_runs,
        completions_in_opposite_order,
        cancels_and_claims_by_id_crosswise,
        claims_that_take_keys_crosswise,
        completions_and_claims_that_swap_keys,
        new_tasks_with_keys_crosswise,
        completions_and_new_needs_crosswise,
        cancel_of_a_tree_against_completions_in_it,
        a_reopening_against_completions_far_down,
    ],
)
def test_groups_never_wait_for_each_other_in_a_circle(
    postgres_store_url: str, scenario: Scenario
) -> None:
    with staged(postgres_store_url) as stage:
        stage.explore(scenario)
