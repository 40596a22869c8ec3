"""Groups that begin, finalize, end and begin again the plan of a task."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import (
    AdvancePlan,
    CancelTask,
    Claim,
    Complete,
    CreateTasks,
    DeleteTask,
    Fail,
    FinalizePlan,
    Operation,
    ReopenTask,
    ReorderPlan,
    ResetTask,
    RetryTask,
    StartPlanning,
)
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import about, break_for_good
from tests.chaos.plans.worker_reports import fail
from tests.race.workflow_states import finalize, plan
from tests.race.worlds import World


@group_of(StartPlanning)
def begin_to_plan(world: World) -> Sequence[Operation]:
    world.task("parent", enqueue=False)
    return [StartPlanning(**about(world, "parent"))]


@group_of(CreateTasks)
def add_children_to_a_plan(world: World) -> Sequence[Operation]:
    plan(world, "one", finalized=False)
    parent = world.ids["parent"]
    return [world.create(name, parent=parent, enqueue=False) for name in ("two", "three")]


@group_of(FinalizePlan, Claim)
def finalize_a_plan_as_a_chain(world: World) -> Sequence[Operation]:
    plan(world, "one", "two", "three", finalized=False)
    return [finalize(world), world.claim("anna")]


@group_of(FinalizePlan, Claim)
def finalize_a_plan_as_a_graph(world: World) -> Sequence[Operation]:
    plan(world, "one", "two", "three", finalized=False)
    return [finalize(world, ("three", "one"), ("three", "two")), world.claim("anna", 3)]


@group_of(Complete)
def complete_the_last_child_of_plans_inside_each_other(world: World) -> Sequence[Operation]:
    plan(world, "inner", finalized=False)
    assert world.engine.tasks.start_planning(world.ids["inner"]).ok
    world.task("only", parent=world.ids["inner"], enqueue=False)
    for name in ("inner", "parent"):
        assert world.engine.tasks.finalize_plan(world.ids[name]).ok
    world.start("only")
    return [world.complete("only")]


@group_of(DeleteTask, AdvancePlan)
def delete_the_last_open_child_of_a_plan_and_look_at_it(world: World) -> Sequence[Operation]:
    plan(world, "one", "two")
    world.finish("one")
    return [DeleteTask(**about(world, "two")), AdvancePlan(**about(world, "parent"))]


@group_of(Fail)
def fail_that_ends_a_plan(world: World) -> Sequence[Operation]:
    plan(world, "one", "two")
    world.start("one")
    return [fail(world, "one", retryable=False)]


@group_of(RetryTask, Claim)
def retry_a_failed_plan(world: World) -> Sequence[Operation]:
    plan(world, "one", "two")
    break_for_good(world, "one")
    return [RetryTask(**about(world, "parent")), world.claim("anna")]


@group_of(ReopenTask, Claim)
def run_a_finished_plan_again(world: World) -> Sequence[Operation]:
    plan(world, "one", "two")
    for name in ("one", "two"):
        world.finish(name)
    return [ReopenTask(**about(world, "parent")), world.claim("anna")]


@group_of(CancelTask)
def cancel_a_plan(world: World) -> Sequence[Operation]:
    plan(world, "one", "two")
    world.start("one")
    return [CancelTask(**about(world, "parent"))]


@group_of(ReorderPlan)
def put_the_children_of_a_plan_in_another_order(world: World) -> Sequence[Operation]:
    plan(world, "one", "two", "three", finalized=False)
    order = tuple(world.ids[name] for name in ("three", "one", "two"))
    return [ReorderPlan(**about(world, "parent"), order=order)]


@group_of(ResetTask)
def reset_a_finished_plan(world: World) -> Sequence[Operation]:
    plan(world, "one", "two")
    for name in ("one", "two"):
        world.finish(name)
    return [ResetTask(**about(world, "parent"))]
