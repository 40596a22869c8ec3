"""The plain model of who gets what: the first in line that nothing keeps from starting."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from tests.simulation.plain.world import Task, World


@dataclass(frozen=True, kw_only=True)
class Worker:
    name: str
    agents: tuple[str, ...] = ("default",)
    tags: Collection[str] = ()
    lease: int

    def takes(self, task: Task) -> bool:
        return task.agent in self.agents and task.tags <= set(self.tags)


Assigned = tuple[str, int, int, object, dict[str, object], object, object]
"""Task, attempt, expiry, the run's input, what the needed steps gave, the item, the feedback."""


def claim(world: World, worker: Worker, count: int) -> list[Assigned]:
    assigned: list[Assigned] = []
    line = [task for task in world.tasks.values() if task.status == "queued" and worker.takes(task)]
    for task in sorted(line, key=lambda task: task.place):
        if len(assigned) < count and world.startable(task):
            assigned.append(_start(world, task, worker))
    return assigned


def claim_by_id(world: World, worker: Worker, task_id: str) -> list[Assigned]:
    task = world.tasks.get(task_id)
    if task is None or not worker.takes(task) or not world.startable(task):
        return []
    return [_start(world, task, worker)]


def _start(world: World, task: Task, worker: Worker) -> Assigned:
    task.status = "running"
    task.attempt += 1
    task.owner = worker.name
    task.expires_at = world.now + worker.lease
    given = None if task.run is None else world.runs[task.run].input
    needed = [world.tasks[need] for need in task.needs]
    verified = [world.tasks[each.verifies] for each in needed if each.verifies is not None]
    farthest_first = sorted((*needed, *verified), key=_distance_to(task), reverse=True)
    outputs = {each.step or each.id: each.output for each in farthest_first}
    items = [each.value for each in world.around(task) if each.is_item]
    said = [each.feedback for each in (task, *world.around(task)) if each.feedback is not None]
    about = (next(iter(items), None), next(iter(said), None))
    return (task.id, task.attempt, task.expires_at, given, outputs, *about)


def _distance_to(task: Task) -> Callable[[Task], tuple[bool, bool, int, str]]:
    """Of needs of one name, who is beside a task is nearer than a loop, and that than its items."""
    return lambda each: (each.parent != task.parent, each.item is not None, each.item or 0, each.id)
