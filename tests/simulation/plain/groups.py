"""The plain model of groups: begun again, brought back from their end, and ended by their parts."""

from __future__ import annotations

from tests.simulation.plain.world import BROKEN, OPEN, TERMINAL, Task, World


def supersede(world: World, task: Task) -> None:
    """End for good what a loop or an item had made in the epoch before."""
    lost: set[str] = set()
    for identifier in world.descendants(task.id) - {task.id}:
        made = world.tasks[identifier]
        # The children that people gave to a lone task are not of its making.
        if made.run is not None and not made.superseded:
            cancel_alone(world, made)
            made.superseded = True
            lost |= set() if made.status == "done" else {identifier}
    for each in world.of_run(task.run):
        if each.needs & lost:
            each.needs = (each.needs - lost) | {task.id}


def cancel_alone(world: World, task: Task) -> None:
    if task.status not in OPEN:
        return
    if task.status == "running":
        world.leave(task, "cancelled", ("cancelled", None))
    task.status = "cancelled"


def bring_back_around(world: World, task: Task) -> list[Task]:
    """Take the groups around a task out of their end; which those were."""
    ended = [group for group in world.around(task) if group.status in TERMINAL]
    groups = [group for group in ended if group.kind == "group" and not group.superseded]
    for group in groups:
        group.status = "queued"
        group.generation += 1
        group.output = group.error = None
        group.skipped = group.left_out = False
    return groups


def settle(world: World) -> bool:
    """End the groups whose parts are all done; whether there were any."""
    ended = [
        task
        for task in world.tasks.values()
        if task.kind == "group" and task.status == "queued"
        if not world.blocked(task) and _is_done(world, task)
    ]
    for task in ended:
        task.status, task.error = "done", None
        task.output = _output(world, task)
    return bool(ended)


def _is_done(world: World, task: Task) -> bool:
    parts = world.children(task)
    known = task.is_item or task.total == len(parts)
    return known and all(part.status == "done" for part in parts)


def _output(world: World, task: Task) -> object:
    """Of an item what its last steps give; of a loop the list of that, in the list's order."""
    parts = world.children(task)
    if not task.is_item:
        return [part.output for part in sorted(parts, key=lambda part: part.item or 0)]
    given = {str(part.step): part.output for part in parts if part.gives}
    return next(iter(given.values())) if len(given) == 1 else given


def fail_around(world: World, broken: list[Task]) -> None:
    """Fail the groups around what has ended badly in a run that failed."""
    for task in broken:
        for group in world.around(task):
            if group.kind == "group" and group.status not in TERMINAL:
                group.status = "failed"


def broken_of(world: World, run: str) -> list[Task]:
    return [task for task in world.of_run(run) if task.status in BROKEN]
