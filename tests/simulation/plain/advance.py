"""The plain model of what follows from the state: conditions, failing runs, runs that end."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain import conditions, groups, loops
from tests.simulation.plain.concurrency import end
from tests.simulation.plain.world import World


def derive(world: World) -> None:
    """Decide what was waiting to be decided, then mark and end the runs whose tasks say so."""
    while any(
        follow(world)
        for follow in (conditions.decide, loops.expand, loops.begin_items, groups.settle)
    ):
        pass
    for run in world.runs.values():
        if run.status != "running":
            continue
        tasks, broken = world.of_run(run.id), groups.broken_of(world, run.id)
        run.holds = run.holds | Hold.FAILING if broken else run.holds & ~Hold.FAILING
        if broken and not any(task.status == "running" for task in tasks):
            end(world, run, "failed")
            run.error = "cancelled" if broken[0].error is None else broken[0].error
            groups.fail_around(world, broken)
        elif all(task.status == "done" for task in tasks):
            end(world, run, "completed")
