"""The plain model of what follows from the state: failing runs, runs that end, places given on."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain.world import BROKEN, Run, World


def derive(world: World) -> None:
    """Mark and end the runs whose tasks say so."""
    for run in world.runs.values():
        if run.status != "running":
            continue
        tasks = sorted(world.of_run(run.id), key=lambda task: task.id)
        broken = [task for task in tasks if task.status in BROKEN]
        run.holds = run.holds | Hold.FAILING if broken else run.holds & ~Hold.FAILING
        if broken and not any(task.status == "running" for task in tasks):
            end(world, run, "failed")
            run.error = "cancelled" if broken[0].error is None else broken[0].error
        elif all(task.status == "done" for task in tasks):
            end(world, run, "completed")


def end(world: World, run: Run, status: str) -> None:
    if run.has_slot and run.slot is not None:
        world.freed[run.slot] += 1
    run.status = status


def give_on(world: World) -> None:
    """Offer every place that was given back to the runs that wait for it."""
    for key, count in list(world.freed.items()):
        admit(world, key, count)
    world.freed.clear()


def admit(world: World, key: str, count: int) -> None:
    """Let the oldest waiting runs in, as far as there is room."""
    waiting = [
        run
        for run in sorted(world.runs.values(), key=lambda run: run.id)
        if run.slot == key and run.status == "running" and Hold.SLOT in run.holds
    ]
    for run in waiting[:count]:
        if world.room(key):
            run.holds &= ~Hold.SLOT
