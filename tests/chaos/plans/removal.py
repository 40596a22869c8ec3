"""Groups of what is removed because it ended long ago."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Operation
from holdfast.engine.surroundings.removal import (
    DELETED,
    RUNS,
    TASKS,
    RemoveDeletedTasks,
    RemoveRuns,
    RemoveTasks,
)
from holdfast.model.task import NewTask
from tests.chaos.plans.registry import group_of
from tests.race.scenarios import CHAIN
from tests.race.worlds import World

YEAR = 366 * 86_400.0


@group_of(RemoveDeletedTasks, RemoveRuns, RemoveTasks)
def remove_what_ended_a_year_ago(world: World) -> Sequence[Operation]:
    world.run(*CHAIN)
    for step in ("plan", "work", "check"):
        world.finish(step)
    top = world.task("lone")
    world.engine.tasks.create(NewTask(title="below", parent=top, agent="nobody", key="below"))
    world.finish("lone")
    assert world.engine.tasks.delete(world.task("unwanted")).ok
    world.day.advance(YEAR)
    before = world.day.now()
    find = world.engine.removals.find
    return [
        RemoveRuns(members=tuple(find(RUNS, before)), before=before),
        RemoveTasks(members=tuple(find(TASKS, before)), before=before),
        RemoveDeletedTasks(members=tuple(find(DELETED, before)), before=before),
    ]
