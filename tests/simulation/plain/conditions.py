"""The plain model of `when`: a task with all it needs begins, is skipped, or cannot tell."""

from __future__ import annotations

from holdfast.model.workflow.reference import Reference
from tests.simulation.plain import failures
from tests.simulation.plain.world import Task, World


def decide(world: World) -> bool:
    """Look at the conditions of whatever has all it needs; whether there were any."""
    waiting = [
        task
        for task in world.tasks.values()
        if task.status == "queued" and task.undecided and not world.blocked(task) and not task.asks
    ]
    for task in waiting:
        _decide(world, task)
    return bool(waiting)


def _decide(world: World, task: Task) -> None:
    assert task.when is not None
    task.decided = True
    try:
        if not look_up(world, task, task.when):
            task.status, task.skipped, task.output = "done", True, None
    except LookupError as error:
        word = "step" if task.made_from is None or task.made_from.for_each is None else "loop"
        failures.cannot_begin(world, task, f"{word} {task.step!r}: {error.args[0]}")


def look_up(world: World, task: Task, reference: Reference) -> object:
    """The value that a reference has for a task; None where what it names was skipped."""
    root, *path = reference.parts
    if root == "input":
        value = world.runs[str(task.run)].input
    elif root == "item":
        value = next(each.value for each in world.around(task) if each.is_item)
    else:
        name, *path = path
        step = _beside(world, task, name)
        if step is None:
            raise LookupError(f"step {name!r} is not done")
        if step.skipped:
            return None
        value = step.output
    shown = reference.parts[: len(reference.parts) - len(path)]
    for part in path:
        shown = (*shown, part)
        value = _enter(value, part, ".".join(shown))
    return value


def _enter(value: object, part: str, shown: str) -> object:
    if isinstance(value, dict):
        if part not in value:
            raise LookupError(f"there is no {shown}; there is {', '.join(value) or 'nothing'}")
        return value[part]
    raise LookupError(f"{shown} leads into {type(value).__name__}, which holds no other values")


def _beside(world: World, task: Task, name: str) -> Task | None:
    """The nearest step of that name that is done: of the same item, of those around it, or none."""
    for place in (*(each.id for each in world.around(task)), None):
        for each in world.of_run(task.run):
            if each.parent == place and each.step == name and each.status == "done":
                return each
    return None
