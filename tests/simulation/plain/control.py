"""The plain model of what people ask of tasks and runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.model.status import Hold
from tests.simulation.plain import groups
from tests.simulation.plain.concurrency import end
from tests.simulation.plain.reopen import bring_back, reopen_left_out
from tests.simulation.plain.world import TERMINAL, WAITING, Answer, Task, World


def enqueue(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or task.status != "idle" or task.is_item:
        return refuse(task)
    task.status = "queued"
    return ("ok", "queued")


def run_now(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or task.status not in WAITING or task.is_item or task.holds & Hold.QUESTION:
        return refuse(task)
    task.status, task.run_now, task.scheduled_for = "queued", True, None
    task.holds &= ~Hold.PAUSED
    return ("ok", "queued")


def cancel(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or task.status in TERMINAL:
        return refuse(task, "already_terminal")
    for identifier in world.descendants(task_id):
        groups.cancel_alone(world, world.tasks[identifier])
    return ("ok", "cancelled")


def reset(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or task.status in {"idle", "running"}:
        return refuse(task)
    needing = [each for each in world.tasks.values() if task_id in each.needs]
    made = [each for each in world.around(task)[:1] if each.kind == "group"]
    ended = task.superseded or any(each.status == "done" for each in made)
    if ended or any(each.begun and not each.superseded for each in needing):
        return ("started_dependents", task.status)
    groups.supersede(world, task)
    task.status, task.total = "idle", None
    task.generation += 1
    task.epoch += 1
    task.failures = task.lost = task.round = task.detours = 0
    task.decided = task.skipped = task.left_out = False
    task.scheduled_for, task.run_now = None, False
    task.forget()
    task.feedback = None
    groups.bring_back_around(world, task)
    reopen_left_out(world, task)
    if task.run is not None:
        bring_back(world, task.run, whole=False)
    return ("ok", "idle")


def delete(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if task.run is not None:
        return ("part_of_run", task.status)
    if task.status == "running":
        return ("invalid_transition", "running")
    if any(task_id in each.needs or each.parent == task_id for each in world.tasks.values()):
        return ("needed_by_others", task.status)
    del world.tasks[task_id]
    return ("ok", None)


def hold(world: World, task_id: str, reason: Hold, until: int | None) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or task.status in TERMINAL:
        return refuse(task, "already_terminal")
    if reason in task.holds and until in {None, task.held_until}:
        return ("repeated", task.status)
    task.holds |= reason
    if reason is Hold.LIMIT and until is not None:
        task.held_until = until
    return ("ok", task.status)


def unhold(world: World, task_id: str, reason: Hold) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or task.status in TERMINAL:
        return refuse(task, "already_terminal")
    if reason not in task.holds:
        return ("repeated", task.status)
    task.holds &= ~reason
    if reason is Hold.LIMIT:
        task.held_until = None
    return ("ok", task.status)


def block(world: World, task_id: str, on: Collection[str]) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if any(need not in world.tasks or world.tasks[need].run != task.run for need in on):
        return ("InvalidInput", None)
    lost = any(world.tasks[need].superseded and world.tasks[need].status != "done" for need in on)
    if lost or world.behind(task_id) & set(on):
        return ("InvalidInput", None)
    if task.status in WAITING and task.needs >= set(on):
        return ("repeated", task.status)
    if task.status not in WAITING or (task.is_item and task.begun):
        return refuse(task)
    task.needs |= set(on)
    return ("ok", task.status)


def unblock(world: World, task_id: str, on: Collection[str] | None) -> Answer:
    task = world.tasks.get(task_id)
    if task is not None and any(need not in world.tasks for need in on or ()):
        return ("InvalidInput", None)
    if task is None or task.status not in WAITING:
        return refuse(task)
    gone = task.needs if on is None else task.needs & set(on)
    if not gone:
        return ("repeated", task.status)
    task.needs = task.needs - gone
    return ("ok", task.status)


def edit(world: World, task_id: str, changes: Mapping[str, object], *, fresh: bool) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not fresh:
        return refuse(task, "version_conflict")
    attempts, losses = changes.get("max_attempts"), changes.get("max_lost")
    spent = isinstance(attempts, int) and attempts <= task.failures
    spent |= isinstance(losses, int) and losses <= task.lost
    # What waits for its condition is given no time.
    untimed = "scheduled_for" in changes and task.undecided
    if task.status not in WAITING or spent or untimed:
        return refuse(task)
    for name, value in changes.items():
        chosen = frozenset(value) if isinstance(value, tuple) else value
        setattr(task, name, chosen)
    return ("ok", task.status)


def cancel_run(world: World, run_id: str) -> Answer:
    run = world.runs.get(run_id)
    if run is None:
        return ("not_found", None)
    if run.status != "running":
        return ("already_terminal", run.status)
    end(world, run, "cancelled")
    for task in world.of_run(run_id):
        groups.cancel_alone(world, task)
    return ("ok", "cancelled")


def hold_run(world: World, run_id: str, reason: Hold, *, on: bool) -> Answer:
    run = world.runs.get(run_id)
    if run is None:
        return ("not_found", None)
    if run.status != "running":
        return ("already_terminal", run.status)
    if (reason in run.holds) == on:
        return ("repeated", "running")
    run.holds ^= reason
    return ("ok", "running")


def refuse(task: Task | None, reason: str = "invalid_transition") -> Answer:
    return ("not_found", None) if task is None else (reason, task.status)
