"""The plain model of loops: a list becomes items, which are begun in turn or side by side."""

from __future__ import annotations

from tests.simulation.plain import creation
from tests.simulation.plain.conditions import look_up
from tests.simulation.plain.world import Task, World


def expand(world: World) -> bool:
    """Make the items of the loops whose lists are known by now; whether there were any."""
    loops = [
        task
        for task in world.tasks.values()
        if task.kind == "group" and not task.is_item and task.total is None
        if task.status == "queued" and not task.undecided and not world.blocked(task)
    ]
    for loop in loops:
        _expand(world, loop)
    return bool(loops)


def _expand(world: World, loop: Task) -> None:
    step = loop.made_from
    assert step is not None
    assert step.for_each is not None
    try:
        values = look_up(world, loop, step.for_each)
    except LookupError as error:
        loop.status, loop.error = "failed", f"loop {step.id!r}: {error.args[0]}"
        return
    values = [] if values is None else values
    if not isinstance(values, list):
        told = f"{step.for_each} is no list, but {type(values).__name__}"
        loop.status, loop.error = "failed", f"loop {step.id!r}: {told}"
        return
    loop.total = len(values)
    for place, value in enumerate(values):
        creation.add_item(world, loop, place, value)


def begin_items(world: World) -> bool:
    """Let items begin as far as their loops have room, each with its steps; whether any did."""
    begun = False
    for loop in list(world.tasks.values()):
        if loop.kind != "group" or loop.status != "queued" or loop.total is None:
            continue
        if world.blocked(loop):
            continue
        items = world.children(loop)
        under_way = sum(item.status == "queued" for item in items)
        idle = [item for item in items if item.status == "idle" and not world.blocked(item)]
        waiting = sorted(idle, key=lambda item: item.position)
        assert loop.made_from is not None
        room = loop.made_from.parallel - under_way
        # Who has their place was told to wait for them while they were done: nobody makes room.
        stuck = [item for item in waiting if room <= 0 and world.waits_for_itself(item)]
        for item in stuck or waiting[: max(0, room)]:
            item.status, begun = "queued", True
            creation.add_body(world, loop, item)
    return begun
