"""The plain model of what follows from the state: conditions, failing runs, runs that end."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain import conditions
from tests.simulation.plain.places import end
from tests.simulation.plain.world import BROKEN, World


def derive(world: World) -> None:
    """Decide what was waiting to be decided, then mark and end the runs whose tasks say so."""
    while conditions.decide(world):
        pass
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
