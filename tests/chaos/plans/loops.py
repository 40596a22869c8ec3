"""Groups that expand loops, start and end their items, and begin them again."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import (
    CancelRun,
    Claim,
    Complete,
    Fail,
    Operation,
    ReopenTask,
    RetryRun,
    StartRun,
)
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR, about, break_for_good
from tests.chaos.plans.worker_reports import fail
from tests.race.scenarios import CHAIN
from tests.race.workflow_states import LAST, STORIES, loop, planned_loop, running_items
from tests.race.worlds import World

TOLD = '["a","b","c"]'


@group_of(Complete, Claim)
def complete_that_expands_a_loop(world: World) -> Sequence[Operation]:
    planned_loop(world)
    return [world.complete("plan", TOLD), world.claim("anna", 2)]


@group_of(StartRun, Claim)
def start_a_run_that_loops_over_its_input(world: World) -> Sequence[Operation]:
    return [world.start_run(loop(), LAST, given=STORIES), world.claim("anna", 2)]


@group_of(Complete, Claim)
def complete_that_ends_an_item_and_begins_the_next(world: World) -> Sequence[Operation]:
    world.run(loop(*CHAIN, parallel=1), LAST, given=STORIES)
    for name in ("plan.0", "work.0"):
        world.finish(name)
    world.start("check.0")
    return [world.complete("check.0"), world.claim("anna")]


@group_of(Complete, Claim)
def complete_that_ends_a_loop_inside_an_item(world: World) -> Sequence[Operation]:
    over = Reference.parse("for_each", "item")
    inner = Step(id="inner", for_each=over, parallel=2, steps=(Step(id="edit"),))
    world.run(loop(inner, parallel=1), given=[["x", "y"], ["z"]])
    for name in ("edit.0", "edit.1"):
        world.start(name)
    return [world.complete("edit.0"), world.complete("edit.1"), world.claim("anna")]


@group_of(Complete, Claim)
def complete_both_items_and_so_the_loop(world: World) -> Sequence[Operation]:
    running_items(world)
    return [world.complete("one.0"), world.complete("one.1"), world.claim("anna")]


@group_of(Complete)
def complete_on_which_conditions_wait(world: World) -> Sequence[Operation]:
    wanted, unwanted = (
        Step(id=name, needs=("plan",), when=Reference.parse("when", f"steps.plan.{name}"))
        for name in ("deploy", "tell")
    )
    world.run(Step(id="plan"), wanted, unwanted, Step(id="last", needs=("tell",)))
    world.start("plan")
    return [world.complete("plan", '{"deploy":true,"tell":false}')]


@group_of(Complete)
def complete_on_which_steps_wait_that_cannot_be_told(world: World) -> Sequence[Operation]:
    skip, back = OnFailure(action="skip"), OnFailure(action="goto", step="draw")
    judged, drawn = (Reference.parse("when", f"steps.{name}.gone") for name in ("plan", "draw"))
    check = Step(id="check", needs=("plan",), verifies="plan", when=judged, on_failure=skip)
    tell = Step(id="tell", needs=("draw",), when=drawn, on_failure=back)
    world.run(Step(id="plan"), check, Step(id="draw"), tell)
    for name in ("plan", "draw"):
        world.start(name)
    return [world.complete("plan", "{}"), world.complete("draw", "{}")]


@group_of(Complete)
def complete_that_gives_no_list(world: World) -> Sequence[Operation]:
    planned_loop(world)
    return [world.complete("plan", '"no list"')]


@group_of(Fail)
def fail_in_an_item_and_so_in_all_around_it(world: World) -> Sequence[Operation]:
    world.run(loop(), LAST, given=STORIES, limit=1)
    world.start("one.0")
    return [fail(world, "one.0", retryable=False)]


@group_of(RetryRun)
def retry_a_run_that_failed_in_an_item(world: World) -> Sequence[Operation]:
    run = world.run(loop(parallel=1), LAST, given=STORIES)
    break_for_good(world, "one.0")
    return [RetryRun(run_id=run, actor=ACTOR)]


@group_of(RetryRun, Claim)
def retry_from_before_a_loop(world: World) -> Sequence[Operation]:
    run = planned_loop(world)
    assert world.engine.commits.submit(world.complete("plan", TOLD)).result().ok
    world.discover()
    world.finish("one.0")
    world.start("one.1")
    return [RetryRun(run_id=run, actor=ACTOR, step="plan"), world.claim("anna")]


@group_of(RetryRun, Claim)
def retry_from_a_loop_over_the_input(world: World) -> Sequence[Operation]:
    run = running_items(world)
    return [RetryRun(run_id=run, actor=ACTOR, step="build"), world.claim("anna", 2)]


@group_of(RetryRun, Claim)
def retry_from_an_item_for_which_who_has_the_place_waits(world: World) -> Sequence[Operation]:
    run = world.run(loop(parallel=1), LAST, given=STORIES)
    world.finish("one.0")
    assert world.engine.tasks.block(world.ids["one.1"], [world.ids["build.0"]]).ok
    return [RetryRun(run_id=run, actor=ACTOR, step="build.1"), world.claim("anna")]


@group_of(ReopenTask)
def reopen_a_step_of_an_item_after_the_end(world: World) -> Sequence[Operation]:
    world.run(loop(), LAST, given=["a"])
    for name in ("one.0", "last"):
        world.finish(name)
    return [ReopenTask(**about(world, "one.0"))]


@group_of(CancelRun)
def cancel_a_run_inside_a_loop(world: World) -> Sequence[Operation]:
    run = world.run(loop(), LAST, given=list("abcd"), limit=1)
    world.finish("one.0")
    world.start("one.1")
    return [CancelRun(run_id=run, actor=ACTOR)]
