"""Runs in a workspace for races and crashes: their steps, and what attempts report of commits."""

from __future__ import annotations

from holdfast.engine.core.operation import Complete, Fail
from holdfast.engine.lines import OpenLine
from holdfast.model.task import Assignment
from holdfast.model.text import digest
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations, Workspace
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.line import Draft, NewHead
from holdfast.model.workflow.reference import Reference
from tests.race.worlds import World

BASE, LEFT, RIGHT, LATE = ("0" * 40, "a" * 40, "b" * 40, "c" * 40)
IN_WORKSPACE = WorkflowDeclarations(workspace=Workspace(git="https://h/shop.git"))
EDIT = StepWork(access="edit")
TWINS = (Step(id="left", work=EDIT), Step(id="right", work=EDIT))


def make_items(plan: OnFailure) -> Step:
    """A loop with a line for each item, whose landing fails by a plan."""
    return Step(
        id="build",
        for_each=Reference.parse("for_each", "input.stories"),
        parallel=2,
        steps=(
            Step(id="write", work=EDIT),
            Step(id="land", needs=("write",), work=StepWork(landing=True), on_failure=plan),
        ),
    )


def start_twins(world: World, *, opened: bool = True) -> str:
    """Two steps on one line, both under way; its line begins at a base."""
    run = world.run(*TWINS, declared=IN_WORKSPACE)
    for name in ("left", "right"):
        held = world.start(name)
        if opened:
            assert world.engine.work.open_line(held.task_id, held.token, BASE).answer.ok
    return run


def open_line(world: World, name: str, base: str | None = None) -> OpenLine:
    return OpenLine(task_id=world.ids[name], fence=world.fences[name], base=base)


def complete_with(
    world: World, name: str, sha: str, *, line: str = "run", number: int = 0
) -> Complete:
    output = f'{{"commit":"{sha}"}}'
    return Complete(
        task_id=world.ids[name],
        fence=world.fences[name],
        output=output,
        digest=digest(output),
        head=NewHead(line=world.ids[line], number=number, base=BASE, sha=sha),
    )


def fail_with(world: World, name: str, sha: str, *, anew: bool = False) -> Fail:
    return Fail(
        task_id=world.ids[name],
        fence=world.fences[name],
        error='"broken"',
        digest=digest('"broken"'),
        retryable=not anew,
        jitter=0.5,
        left=Draft(base=BASE, sha=sha),
        anew=anew,
    )


def reach_landing(world: World, plan: OnFailure | None = None) -> Assignment:
    """Bring the first item to its landing, under way, with a commit on the line of the item."""
    steps = make_items(plan or OnFailure())
    world.run(steps, given={"stories": ["one", "two"]}, declared=IN_WORKSPACE)
    return write_item(world, LEFT)


def write_item(world: World, sha: str) -> Assignment:
    """Write the first item, and start its landing."""
    held = world.start("write.0")
    line = world.engine.work.open_line(held.task_id, held.token, BASE).line
    assert line is not None
    new = NewHead(line=line.id, number=line.number, base=line.head, sha=sha)
    assert world.engine.work.complete(held.task_id, held.token, {"commit": sha}, commit=new).ok
    world.discover()
    return world.start("land.0")
