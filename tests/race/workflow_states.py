"""Loops, verifiers, plans and calls brought to where a race or a crash begins."""

from __future__ import annotations

from typing import Any

from holdfast.engine.core.operation import Complete, FinalizePlan, StartPlanning
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.race.worlds import World

ACCEPT = '{"verdict":"accept"}'
REJECT = '{"feedback":"too long","verdict":"reject"}'
STORIES = ("a", "b")
LAST = Step(id="last", needs=("build",))


def loop(*body: Step, over: str = "input", parallel: int = 2, **more: Any) -> Step:
    chosen = body or (Step(id="one"),)
    each = Reference.parse("for_each", over)
    return Step(id="build", for_each=each, parallel=parallel, steps=chosen, **more)


def verified(**verifier: Any) -> tuple[Step, ...]:
    """A step, one that builds on it, the verifier that judges both, and one behind it."""
    return (
        Step(id="implement"),
        Step(id="lint", needs=("implement",)),
        Step(id="verify", verifies="implement", needs=("lint",), **verifier),
        Step(id="commit", needs=("implement",)),
    )


def running_items(world: World) -> str:
    """A loop with both of its items under way, and a step behind it."""
    run = world.run(loop(), LAST, given=STORIES)
    world.start("one.0")
    world.start("one.1")
    return run


def planned_loop(world: World) -> str:
    """A loop whose list is about to be told."""
    run = world.run(Step(id="plan"), loop(over="steps.plan", needs=("plan",)), LAST)
    world.start("plan")
    return run


def judging(world: World, *, in_item: bool = False, **verifier: Any) -> None:
    """A verifier that is about to give its verdict, in a run or in its only item."""
    body = verified(**verifier)
    if in_item:
        world.run(loop(*body), LAST, given=["a"])
    else:
        world.run(*body)
    suffix = ".0" if in_item else ""
    for name in ("implement", "lint"):
        world.finish(name + suffix)
    world.start("verify" + suffix)


def verdict(world: World, said: str, name: str = "verify") -> Complete:
    return world.complete(name, said)


def plan(world: World, *children: str, finalized: bool = True) -> None:
    """A task that is being planned, or whose plan stands, with children in their order."""
    parent = world.task("parent", enqueue=False)
    begin = StartPlanning(task_id=parent, actor="user")
    assert world.engine.commits.submit(begin).result().ok
    for place, name in enumerate(children):
        world.task(name, parent=parent, position=place, enqueue=False)
    if finalized:
        assert world.engine.commits.submit(finalize(world)).result().ok


def finalize(world: World, *pairs: tuple[str, str]) -> FinalizePlan:
    graph = tuple((world.ids[child], world.ids[need]) for child, need in pairs) or None
    return FinalizePlan(task_id=world.ids["parent"], actor="user", graph=graph)


def call(flow: Workflow, name: str = "ship", **more: Any) -> Step:
    """A step that is a run of another workflow."""
    return Step(id=name, work=StepWork(workflow=flow.name, version=flow.version), **more)


def calling(world: World, *beside: Step, **more: Any) -> str:
    """A run with a step that calls another workflow of one step, which is running."""
    flow = world.flow(Step(id="pack"))
    run = world.run(call(flow, **more), *beside)
    world.start("ship@1.pack")
    return run
