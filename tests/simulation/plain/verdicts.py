"""The plain model of verifiers: only an acceptance passes, a rejection brings the work back."""

from __future__ import annotations

from tests.simulation.plain import failures, reopening
from tests.simulation.plain.world import Answer, Task, World

NO_VERDICT = "a verifier's output must hold `verdict`: `accept`, or `reject` with `feedback`"


def judge(world: World, task: Task, output: object) -> Answer:
    said = output.get("verdict") if isinstance(output, dict) else None
    if said == "accept":
        world.leave(task, "done", ("completed", output))
        task.output, task.error = output, None
        return ("ok", "done")
    if not isinstance(output, dict) or said != "reject":
        failures.fail(world, task, NO_VERDICT, retryable=True, jitter=1.0)
        return ("invalid_output", task.status)
    _reject(world, task, output)
    return ("ok", task.status)


def _reject(world: World, task: Task, output: dict[str, object]) -> None:
    task.round += 1
    feedback = output.get("feedback")
    if task.out_of_rounds:
        task.output = None
        spent = {"rounds": task.max_rounds, "feedback": feedback}
        failures.give_up(world, task, ("rejected", output), spent, feedback)
        return
    world.leave(task, "queued", ("rejected", output))
    task.generation += 1
    task.epoch += 1
    task.failures = task.lost = 0
    task.output, task.error, task.scheduled_for, task.decided = output, None, None, False
    reopening.reopen_subject(world, task, feedback)
