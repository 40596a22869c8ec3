"""Tasks that need others and belong to no run: no run's lock stands between their writers."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import BlockTask, DeleteTask, ReopenTask, ResetTask, UnblockTask
from tests.race.explorer import Plans, Stage, staged
from tests.race.racers import COMMIT, Gate, eventually
from tests.race.worlds import World


def test_the_last_of_two_siblings_unblocks_what_needs_both(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("left")
        world.task("right")
        world.task("last", "left", "right")
        world.start("left")
        world.start("right")
        return [world.complete("left")], [world.complete("right")]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("task.unblocked") == 1


def test_a_task_that_needs_one_which_completes_meanwhile_is_ready(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("need")
        world.start("need")
        return [world.create("new", "need")], [world.complete("need")]

    stage.explore(scenario)


def test_a_task_that_comes_to_need_one_which_completes_meanwhile_is_ready(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        need = world.task("need")
        other = world.task("other")
        world.start("need")
        return [BlockTask(task_id=other, actor="user", on=(need,))], [world.complete("need")]

    stage.explore(scenario)


@pytest.mark.parametrize("again", [BlockTask, UnblockTask])
def test_two_links_or_unlinks_of_the_same_tasks_are_written_once(
    stage: Stage, again: type[BlockTask | UnblockTask]
) -> None:
    def scenario(world: World) -> Plans:
        need = world.task("need")
        last = world.task("last") if again is BlockTask else world.task("last", "need")
        ask = again(task_id=last, actor="user", on=(need,))
        return [ask], [ask]

    told = "task.blocked" if again is BlockTask else "task.unblocked"
    for outcome in stage.explore(scenario):
        assert outcome.history("last").count(told) == 1


def test_a_task_that_no_longer_needs_one_while_the_other_completes(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        left = world.task("left")
        world.task("right")
        last = world.task("last", "left", "right")
        world.start("right")
        return [UnblockTask(task_id=last, actor="user", on=(left,))], [world.complete("right")]

    stage.explore(scenario)


@pytest.mark.parametrize("undo", [ResetTask, ReopenTask, DeleteTask])
def test_a_new_task_never_rests_on_a_need_that_is_being_undone(
    stage: Stage, undo: type[ResetTask | ReopenTask | DeleteTask]
) -> None:
    def scenario(world: World) -> Plans:
        need = world.task("need")
        world.finish("need")
        return [world.create("new", "need")], [undo(task_id=need, actor="user")]

    stage.explore(scenario)


def test_a_new_task_never_rests_on_a_need_far_down_a_chain_that_is_reopened(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        top = world.task("top")
        world.task("middle", "top")
        world.task("bottom", "middle")
        for name in ("top", "middle", "bottom"):
            world.finish(name)
        return [world.create("new", "bottom")], [ReopenTask(task_id=top, actor="user")]

    stage.explore(scenario)


def test_two_new_needs_never_close_a_cycle(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        a, b = world.task("a"), world.task("b")
        return (
            [BlockTask(task_id=a, actor="user", on=(b,))],
            [BlockTask(task_id=b, actor="user", on=(a,))],
        )

    stage.explore(scenario)


def test_two_new_needs_far_apart_never_close_a_cycle(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        a, c = world.task("a"), world.task("c")
        world.task("a2", "a")
        world.task("c2", "c")
        d, b = world.task("d", "a2"), world.task("b", "c2")
        return (
            [BlockTask(task_id=a, actor="user", on=(b,))],
            [BlockTask(task_id=c, actor="user", on=(d,))],
        )

    stage.explore(scenario)


def test_siblings_that_complete_while_a_task_comes_to_need_both_unblock_it(
    postgres_store_url: str,
) -> None:
    with staged(postgres_store_url) as stage:
        world = stage.world()
        world.task("left")
        world.task("right")
        world.start("left")
        world.start("right")
        creating = stage.third.start_up_to(COMMIT, [world.create("last", "left", "right")])
        gate = Gate(COMMIT)
        left = stage.first.start([world.complete("left")], gate)
        right = stage.second.start([world.complete("right")])
        assert stage.first.go_as_far_as_possible(left)
        assert stage.second.go_as_far_as_possible(right)
        creating.finish()
        assert eventually(gate.reached.is_set)
        stage.second.go_as_far_as_possible(right)
        gate.open()
        left.result()
        right.result()
        assert not stage.engine.tasks.get(world.ids["last"]).blocked
