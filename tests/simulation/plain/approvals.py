"""The plain model of what a person settles: approvals, held tasks, questions."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain import failures
from tests.simulation.plain.reopen import reopen_rejected
from tests.simulation.plain.world import WAITING, Answer, Task, World


def approve(world: World, task_id: str, note: object) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if _can_be_settled(world, task):
        task.status, task.output, task.error = "done", note, None
    elif _is_held(task):
        _let_go_on(world, task)
    else:
        return ("invalid_transition", task.status)
    return ("ok", task.status)


def _let_go_on(world: World, task: Task) -> None:
    task.holds &= ~Hold.APPROVAL
    if task.verifies is not None and task.out_of_rounds:
        task.max_rounds = task.round + 1
        task.epoch += 1
        if world.tasks[task.verifies].status == "done":
            reopen_rejected(world, task)


def reject(world: World, task_id: str, note: object) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    said = "rejected" if note is None else note
    plan = task.on_failure
    if _can_be_settled(world, task) and plan.action == "goto" and task.detours < plan.max_rounds:
        task.status, task.output, task.error = "queued", None, said
        failures.go_back(world, task, said)
        return ("ok", task.status)
    if _can_be_settled(world, task):
        task.output, task.error = note, said
    elif _is_held(task):
        task.holds &= ~Hold.APPROVAL
        task.error = note if note is not None else task.error or "rejected"
    else:
        return ("invalid_transition", task.status)
    task.status = "failed"
    return ("ok", "failed")


def answer(world: World, task_id: str, said: object) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if task.status not in WAITING or Hold.QUESTION not in task.holds:
        return ("invalid_transition", task.status)
    task.holds &= ~Hold.QUESTION
    task.feedback, task.question = said, None
    return ("ok", task.status)


def _can_be_settled(world: World, task: Task) -> bool:
    """An approval carries no hold of its own, but waits for its needs and with its run."""
    waits = task.kind == "approval" and task.status in WAITING
    return waits and not world.blocked(task) and not world.run_holds(task)


def _is_held(task: Task) -> bool:
    return task.status == "queued" and Hold.APPROVAL in task.holds
