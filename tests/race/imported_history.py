"""What an older store knew, small enough to be raced with and killed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.engine.surroundings.imports import PastRun, PastTask, PastTree
from holdfast.model.run import NewRun
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from tests.race.worlds import World


def past(world: World, name: str, status: Status, *needs: str, parent: str = "") -> PastTask:
    return PastTask(
        name=name,
        task=NewTask(title=name, step=name, agent=world.agent, key=f"{name}-{world.number}"),
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
        run=NewRun(workflow=workflow, key=f"{name}-{world.number}"),
        tasks=tuple(tasks),
        body=name,
        cancelled=cancelled,
    )


def tree(world: World) -> PastTree:
    """A plan with another inside it that is done, and a child that comes next."""
    tasks = (
        plan(world, "outer", Status.IDLE),
        plan(world, "inner", Status.DONE, "outer"),
        past(world, "only", Status.DONE, parent="inner"),
        past(world, "next", Status.QUEUED, "inner", parent="outer"),
    )
    return PastTree(tasks=tasks, body="tree")
