"""Groups of what budgets and deadlines bring: holds, more budget, and ends that time decides."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Claim, ExpireRun, Operation, RaiseBudget, Renew
from holdfast.model.budget import Budget
from holdfast.model.run import NewRun
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.chaos.plans.registry import group_of
from tests.race.worlds import LEASE, World

ACTOR = "user"
MINUTE = 60


def start_limited(world: World, budget: Budget) -> str:
    """A run of three steps with a budget and a minute, and one that waits behind it."""
    steps = tuple(Step(id=name, agent=world.agent) for name in ("one", "two", "three"))
    limited = Workflow.define(
        "limited",
        steps,
        declared=WorkflowDeclarations(budget=budget),
        concurrency=Concurrency(key="limited"),
        deadline=MINUTE,
    )
    first = world.engine.runs.start(NewRun(workflow=limited)).id
    world.engine.runs.start(NewRun(workflow=limited, deadline=2 * MINUTE))
    for task in world.engine.runs.tasks(first):
        world.know(str(task.step), task.id)
    return first


def tell(world: World, name: str, usage: str) -> Renew:
    return Renew(task_id=world.ids[name], fence=world.fences[name], lease=LEASE, usage=usage)


@group_of(Renew)
def tell_of_the_last_dollar(world: World) -> Sequence[Operation]:
    start_limited(world, Budget(usd=2, usd_per_attempt=1))
    world.start("one")
    world.start("two")
    return [tell(world, "one", '{"usd": 1}'), tell(world, "two", '{"usd": 1}')]


@group_of(Claim)
def claim_the_last_attempt(world: World) -> Sequence[Operation]:
    start_limited(world, Budget(attempts=1))
    return [world.claim("anna")]


@group_of(RaiseBudget)
def raise_what_was_used_up(world: World) -> Sequence[Operation]:
    run = start_limited(world, Budget(usd=1, attempts=1))
    world.start("one")
    return [RaiseBudget(run_id=run, actor=ACTOR, usd=1_000_000, attempts=1)]


@group_of(ExpireRun)
def end_a_run_that_is_overdue(world: World) -> Sequence[Operation]:
    run = start_limited(world, Budget(usd=1))
    world.start("one")
    world.day.advance(MINUTE)
    return [ExpireRun(run_id=run)]
