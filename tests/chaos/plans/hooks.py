"""Groups that end runs and lone tasks which hooks are for, and groups of hooks themselves."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import CancelRun, Claim, Complete, Fail, Operation
from holdfast.engine.surroundings.hooks import RegisterHooks, RemoveHook
from holdfast.model.workflow.graph import Step
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR
from tests.chaos.plans.worker_reports import fail
from tests.contract.hook_tasks import AGENT, hook
from tests.race.surroundings.test_hooks import registration
from tests.race.worlds import World


@group_of(Complete, Fail, CancelRun, Claim)
def end_runs_and_a_task_that_two_hooks_are_for(world: World) -> Sequence[Operation]:
    shared = world.concurrency(5, "hooks")
    world.engine.hooks.register([hook("after", concurrency=shared), hook("also")])
    world.run(Step(id="last"), name="completing")
    cancelled = world.run(Step(id="open"), name="cancelled")
    world.task("lone")
    for name in ("last", "lone"):
        world.start(name)
    return [
        world.complete("last"),
        fail(world, "lone", retryable=False),
        CancelRun(run_id=cancelled, actor=ACTOR),
        world.claim("anna", 2, agents=(AGENT,)),
    ]


@group_of(RegisterHooks, RemoveHook)
def register_and_remove_hooks(world: World) -> Sequence[Operation]:
    world.engine.hooks.register([hook("gone"), hook("changed")])
    return [registration("changed", "new"), RemoveHook(name="gone")]
