"""The plain model of verifiers: only an acceptance passes, a rejection brings the work back."""

from __future__ import annotations

from typing import Any

from tests.simulation.plain import failures, reopen
from tests.simulation.plain.world import Answer, Task, World

NO_VERDICT = "a verifier's output must hold `verdict`: `accept`, or `reject` with `feedback`"


def judge(world: World, task: Task, told: object) -> Answer:
    output = told if isinstance(told, dict) else {}
    said = output.get("verdict")
    if said == "accept":
        world.leave(task, "done", ("completed", output))
        task.output, task.error = output, None
        return ("ok", "done")
    mistake = NO_VERDICT if said != "reject" else _unknown_item(world, task, output)
    if mistake is not None:
        failures.fail(world, task, mistake, retryable=True, jitter=1.0)
        return ("invalid_output", task.status)
    _reject(world, task, output)
    return ("ok", task.status)


def _unknown_item(world: World, task: Task, output: dict[str, Any]) -> str | None:
    subject = world.tasks[str(task.verifies)]
    total = subject.total or 0
    unknown = [place for place in output.get("items", ()) if place >= total]
    if subject.kind != "group" or not unknown:
        return None
    there = f"there is no item {unknown[0]}; there are {total}, counted from 0"
    return f"a verdict's `items`: {there}"


def _reject(world: World, task: Task, output: dict[str, Any]) -> None:
    task.round += 1
    feedback = output.get("feedback")
    if task.out_of_rounds:
        task.output = None
        spent = {"rounds": task.max_rounds, "feedback": feedback} | _places(world, task, output)
        task.said = spent
        failures.give_up(world, task, ("rejected", output), spent, feedback)
        return
    world.leave(task, "queued", ("rejected", output))
    task.generation += 1
    task.epoch += 1
    task.failures = task.lost = 0
    task.output, task.error, task.scheduled_for, task.decided = output, None, None, False
    reopen.reopen_subject(world, task, feedback, output.get("items", ()))


def _places(world: World, task: Task, output: dict[str, Any]) -> dict[str, Any]:
    items = output.get("items")
    return {"items": items, "epoch": world.tasks[str(task.verifies)].epoch} if items else {}
