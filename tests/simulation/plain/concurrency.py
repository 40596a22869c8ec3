"""The plain model of concurrency: places given back, and given on to whoever waits."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain.world import Run, World


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
