"""The plain model of `when`: a task with all it needs begins, is skipped, or cannot tell."""

from __future__ import annotations

from holdfast.model.reference import Reference
from tests.simulation.plain.world import Task, World


def decide(world: World) -> bool:
    """Look at the conditions of whatever has all it needs; whether there were any."""
    waiting = [
        task
        for task in world.tasks.values()
        if task.status == "queued" and task.undecided and not world.blocked(task)
    ]
    for task in waiting:
        _decide(world, task)
    return bool(waiting)


def _decide(world: World, task: Task) -> None:
    assert task.when is not None
    task.decided = True
    try:
        if not look_up(world, task, task.when):
            task.status, task.skipped = "done", True
    except LookupError as error:
        task.status, task.error = "failed", f"step {task.step!r}: {error.args[0]}"


def look_up(world: World, task: Task, reference: Reference) -> object:
    """The value that a reference has for a task; None where what it names was skipped."""
    root, *path = reference.parts
    if root == "input":
        value = world.runs[str(task.run)].input
    else:
        name, *path = path
        (step,) = (each for each in world.of_run(str(task.run)) if each.step == name)
        if step.status != "done":
            raise LookupError(f"step {name!r} is not done")
        if step.skipped:
            return None
        value = step.output
    for part in path:
        assert isinstance(value, dict)
        value = value[part]
    return value
