"""Groups that take over what an older store knew: trees of tasks, and runs in every state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.engine.operations import Claim, Import, Operation
from holdfast.model.graph import Step, Workflow
from holdfast.model.past import PastRun, PastTask, PastTree
from holdfast.model.run import NewRun
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import NewTask
from tests.chaos.people_plans import ACTOR
from tests.chaos.plans import group_of
from tests.race.worlds import World


def past(world: World, name: str, status: Status, *needs: str, parent: str = "") -> PastTask:
    return PastTask(
        name=name,
        task=NewTask(title=name, agent=world.agent, key=name),
        status=status,
        needs=needs,
        parent=parent or None,
        result=name,
    )


def plan(world: World, name: str, status: Status, parent: str = "") -> PastTask:
    """A plan that is going on, or has ended with its children."""
    made = past(world, name, status, parent=parent)
    return replace(made, phase=PlanningPhase.FINALIZED, settled=status is not Status.IDLE)


def run(world: World, name: str, tasks: Sequence[PastTask], *, cancelled: bool = False) -> PastRun:
    steps = [Step(id=task.name, agent=world.agent, needs=task.needs) for task in tasks]
    workflow = Workflow.define("older", tuple(steps))
    return PastRun(
        run=NewRun(workflow=workflow, key=name), tasks=tuple(tasks), body=name, cancelled=cancelled
    )


@group_of(Import, Claim)
def take_over_a_tree_of_tasks(world: World) -> Sequence[Operation]:
    tasks = (
        plan(world, "outer", Status.IDLE),
        plan(world, "inner", Status.DONE, "outer"),
        past(world, "only", Status.DONE, parent="inner"),
        past(world, "next", Status.QUEUED, "inner", parent="outer"),
    )
    tree = PastTree(tasks=tasks, body="tree")
    return [*world.engine.imports.prepare([tree], ACTOR), world.claim("anna", 2)]


@group_of(Import)
def take_over_runs(world: World) -> Sequence[Operation]:
    early = replace(past(world, "early", Status.DONE), late=("open",))
    going = run(world, "going", [past(world, "open", Status.QUEUED), early])
    failed = [past(world, "one", Status.FAILED), past(world, "two", Status.QUEUED, "one")]
    stopped = run(world, "stopped", failed, cancelled=True)
    return world.engine.imports.prepare([going, stopped], ACTOR)
