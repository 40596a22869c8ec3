"""Plans under every interleaving: one set of needs, children queued once, one end."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import (
    DeleteTask,
    EditTask,
    FinalizePlan,
    Operation,
    ReopenTask,
    ReorderPlan,
    ResetTask,
    RetryTask,
    StartPlanning,
)
from tests.race.explorer import Plans, Stage
from tests.race.state.test_runs import failure
from tests.race.workflow_states import finalize, plan
from tests.race.worlds import World


def test_a_plan_finalized_twice_at_once_has_one_set_of_needs(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", "three", finalized=False)
        return [finalize(world)], [finalize(world)]

    for outcome in stage.explore(scenario):
        assert outcome.history("parent").count("task.planned") == 1
        for child in ("one", "two", "three"):
            assert outcome.history(child) == ["task.created", "task.queued"]


def test_a_plan_finalized_at_once_as_a_chain_and_as_a_graph(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", "three", finalized=False)
        return [finalize(world)], [finalize(world, ("one", "three"))]

    stage.explore(scenario)


def test_finalize_against_a_new_child(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", finalized=False)
        parent = world.ids["parent"]
        return [finalize(world)], [world.create("two", parent=parent, position=9, enqueue=False)]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", ["edit", "delete", "claim", "cancel"])
def test_finalize_against_what_happens_to_a_child(stage: Stage, kind: str) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", finalized=False)
        child = world.ids["two"]
        others: dict[str, Operation] = {
            "edit": EditTask(task_id=child, actor="user", changes={"position": -1}),
            "delete": DeleteTask(task_id=child, actor="user"),
            "claim": world.claim_by_id("two", "anna"),
            "cancel": world.cancel("two"),
        }
        return [finalize(world)], [others[kind]]

    stage.explore(scenario)


def test_finalize_against_the_end_of_a_child_that_had_begun(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", finalized=False)
        world.start("one")
        return [finalize(world)], [world.complete("one")]

    for outcome in stage.explore(scenario):
        assert outcome.history("two")[-1] in {"task.queued", "task.unblocked"}


def test_finalize_against_cancel_of_the_plan(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", finalized=False)
        return [finalize(world)], [world.cancel("parent")]

    for outcome in stage.explore(scenario):
        assert set(outcome.statuses.values()) == {"cancelled"}


def test_two_starts_of_the_planning_of_one_task_begin_it_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        begin = StartPlanning(task_id=world.task("parent", enqueue=False), actor="user")
        return [begin], [begin]

    for outcome in stage.explore(scenario):
        assert outcome.history("parent").count("task.planning") == 1


def test_planning_against_a_claim_of_the_task_by_its_id(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        begin = StartPlanning(task_id=world.task("parent", enqueue=False), actor="user")
        return [begin], [world.claim_by_id("parent", "anna")]

    stage.explore(scenario)


def running_children(world: World) -> None:
    plan(world, "one", "two", "three", finalized=False)
    assert world.engine.commits.submit(finalize(world, ("three", "one"))).result().ok
    for name in ("one", "two"):
        world.start(name)


def test_the_last_two_children_end_at_once_and_end_their_plan_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", "three", finalized=False)
        assert world.engine.commits.submit(finalize(world, ("three", "one"))).result().ok
        world.finish("one")
        world.start("two")
        world.start("three")
        return [world.complete("two")], [world.complete("three")]

    for outcome in stage.explore(scenario):
        assert outcome.history("parent").count("task.done") == 1


def test_the_last_two_children_one_ended_and_one_deleted_at_once_end_their_plan_once(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", finalized=False)
        assert world.engine.commits.submit(finalize(world)).result().ok
        world.task("two", parent=world.ids["parent"])
        world.start("one")
        return [world.complete("one")], [DeleteTask(task_id=world.ids["two"], actor="user")]

    for outcome in stage.explore(scenario):
        assert outcome.history("parent").count("task.done") == 1


def test_a_child_that_fails_against_the_end_of_another(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        running_children(world)
        return [failure(world, "one")], [world.complete("two")]

    for outcome in stage.explore(scenario):
        assert outcome.history("parent").count("task.failed") == 1


def test_a_child_that_fails_against_a_claim_of_another(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", finalized=False)
        assert world.engine.commits.submit(finalize(world, ("one", "two"))).result().ok
        world.start("two")
        world.task("three", parent=world.ids["parent"])
        return [failure(world, "two")], [world.claim("anna")]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", [RetryTask, ReopenTask])
def test_a_plan_begun_again_against_the_end_of_a_child(
    stage: Stage, kind: type[RetryTask | ReopenTask]
) -> None:
    def scenario(world: World) -> Plans:
        running_children(world)
        world.engine.commits.submit(failure(world, "one")).result()
        again = kind(task_id=world.ids["parent"], actor="user")
        return [again], [world.complete("two")]

    stage.explore(scenario)


def test_retry_of_a_child_against_the_end_of_another(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        running_children(world)
        world.engine.commits.submit(failure(world, "one")).result()
        return [RetryTask(task_id=world.ids["one"], actor="user")], [world.complete("two")]

    stage.explore(scenario)


def test_a_plan_inside_a_plan_ends_both_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "inner", finalized=False)
        outer = world.ids["parent"]
        inner = world.ids["inner"]
        about = {"task_id": inner, "actor": "user"}
        assert world.engine.commits.submit(StartPlanning(**about)).result().ok
        for name in ("one", "two"):
            world.task(name, parent=inner, enqueue=False)
        assert world.engine.tasks.finalize_plan(
            inner, graph={world.ids["one"]: [], world.ids["two"]: []}
        ).ok
        assert world.engine.tasks.finalize_plan(outer).ok
        world.start("one")
        world.start("two")
        return [world.complete("one")], [world.complete("two")]

    for outcome in stage.explore(scenario):
        assert outcome.history("inner").count("task.done") == 1
        assert outcome.history("parent").count("task.done") == 1


def test_a_plan_finalized_at_once_with_the_one_around_it_starts_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "first", "inner", finalized=False)
        inner = world.ids["inner"]
        assert world.engine.tasks.start_planning(inner).ok
        world.task("one", parent=inner, enqueue=False)
        return [finalize(world)], [FinalizePlan(task_id=inner, actor="user")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["one"] == "queued"
        assert outcome.history("one").count("task.queued") == 1


def reorder(world: World, *names: str) -> ReorderPlan:
    order = tuple(world.ids[name] for name in names)
    return ReorderPlan(task_id=world.ids["parent"], actor="user", order=order)


@pytest.mark.parametrize("kind", ["finalize", "reorder", "cancel", "claim"])
def test_another_order_against_what_happens_to_the_plan(stage: Stage, kind: str) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two", finalized=False)
        others: dict[str, Operation] = {
            "finalize": finalize(world),
            "reorder": reorder(world, "one", "two"),
            "cancel": world.cancel("one"),
            "claim": world.claim_by_id("one", "anna"),
        }
        return [reorder(world, "two", "one")], [others[kind]]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", ["reopen", "child"])
def test_reset_of_a_plan_against_what_begins_it_again(stage: Stage, kind: str) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one", "two")
        for name in ("one", "two"):
            world.finish(name)
        parent = world.ids["parent"]
        others: dict[str, Operation] = {
            "reopen": ReopenTask(task_id=parent, actor="user"),
            "child": ReopenTask(task_id=world.ids["one"], actor="user"),
        }
        return [ResetTask(task_id=parent, actor="user")], [others[kind]]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", [ReopenTask, ResetTask])
def test_a_plan_begun_again_against_the_claim_of_who_needs_a_part(
    stage: Stage, kind: type[ReopenTask | ResetTask]
) -> None:
    def scenario(world: World) -> Plans:
        plan(world, "one")
        world.task("after", "one")
        world.finish("one")
        again = kind(task_id=world.ids["parent"], actor="user")
        return [again], [world.claim_by_id("after", "anna")]

    stage.explore(scenario)
