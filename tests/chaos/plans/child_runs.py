"""Groups in which a step calls a workflow, and ends or begins again with the run of it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import (
    CancelRun,
    Claim,
    Complete,
    Fail,
    HoldRun,
    Operation,
    RetryRun,
)
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import OnFailure, Step
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR, break_for_good
from tests.chaos.plans.worker_reports import fail
from tests.race.workflow_states import call, calling
from tests.race.worlds import World

LAST = Step(id="last", needs=("ship",))


@group_of(Complete, Claim)
def complete_behind_which_a_workflow_is_called(world: World) -> Sequence[Operation]:
    flow = world.flow(Step(id="pack"), limit=1)
    world.run(Step(id="plan"), call(flow, needs=("plan",)), LAST)
    world.start("plan")
    return [world.complete("plan"), world.claim("anna")]


@group_of(Complete, Claim)
def complete_that_ends_a_called_run(world: World) -> Sequence[Operation]:
    calling(world, LAST)
    return [world.complete("ship@1.pack"), world.claim("anna")]


@group_of(Fail)
def fail_that_ends_called_runs_one_of_which_goes_back(world: World) -> Sequence[Operation]:
    flow = world.flow(Step(id="pack"))
    back = OnFailure(action="goto", step="plan")
    world.run(
        Step(id="plan"),
        call(flow, needs=("plan",), on_failure=back),
        call(flow, "bill", on_failure=OnFailure(action="ask")),
    )
    world.finish("plan")
    for name in ("ship@1.pack", "bill@1.pack"):
        world.start(name)
    return [fail(world, f"{name}@1.pack", retryable=False) for name in ("ship", "bill")]


@group_of(HoldRun)
def pause_a_run_with_what_it_has_called(world: World) -> Sequence[Operation]:
    run = calling(world, LAST)
    return [HoldRun(run_id=run, actor=ACTOR, reason=Hold.PAUSED)]


@group_of(CancelRun)
def cancel_a_run_with_what_it_has_called(world: World) -> Sequence[Operation]:
    run = calling(world, LAST)
    return [CancelRun(run_id=run, actor=ACTOR)]


@group_of(RetryRun, Claim)
def retry_a_run_with_what_it_has_called(world: World) -> Sequence[Operation]:
    flow = world.flow(Step(id="pack"))
    run = world.run(call(flow), LAST)
    break_for_good(world, "ship@1.pack")
    return [RetryRun(run_id=run, actor=ACTOR), world.claim("anna")]
