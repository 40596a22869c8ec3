"""The plain model of attempts that failed: tried again, or ended as their step says."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain import reopen
from tests.simulation.plain.world import Task, World


def fail(world: World, task: Task, error: object, *, retryable: bool, jitter: float) -> None:
    task.failures += 1
    task.output = None
    if not retryable or task.failures >= task.max_attempts:
        give_up(world, task, ("failed", error), error, error)
        return
    world.leave(task, "queued", ("failed", error))
    delay = min(task.backoff_max, task.backoff * 2 ** (task.failures - 1))
    task.scheduled_for, task.error = world.now + int(jitter * delay), error


def lose(world: World, task: Task, error: str) -> None:
    task.lost += 1
    task.output = None
    if task.lost >= task.max_lost:
        give_up(world, task, ("lost", None), error, error)
        return
    world.leave(task, "queued", ("lost", None))
    task.scheduled_for, task.error = None, error


def give_up(
    world: World, task: Task, ending: tuple[str, object], error: object, feedback: object
) -> None:
    """End an attempt after which there is no other, and do what the step says of that."""
    plan = task.on_failure
    goes_back = plan.action == "goto" and task.detours < plan.max_rounds
    statuses = {"skip": "done", "ask": "queued"}
    world.leave(task, "queued" if goes_back else statuses.get(plan.action, "failed"), ending)
    task.error, task.scheduled_for = error, None
    task.skipped = plan.action == "skip"
    _leave_out(world, task)
    if goes_back:
        go_back(world, task, feedback)
    elif plan.action == "ask":
        _begin_again(task)
        task.holds |= Hold.APPROVAL


def cannot_begin(world: World, task: Task, error: str) -> None:
    """Do what the step says of a failure, though it has had no attempt."""
    plan = task.on_failure
    task.error, task.output = error, None
    if plan.action == "goto" and task.detours < plan.max_rounds:
        go_back(world, task, error)
    elif plan.action == "ask":
        task.decided = False
        task.holds |= Hold.APPROVAL
    else:
        task.status = "done" if plan.action == "skip" else "failed"
        task.skipped = plan.action == "skip"
        _leave_out(world, task)


def _leave_out(world: World, verifier: Task) -> None:
    """What was never accepted gives nothing, nor does what stands between."""
    if not verifier.skipped or verifier.verifies is None:
        return
    subject = verifier.verifies
    between = world.dependents(subject) & world.needed(verifier.id)
    for task in (world.tasks[each] for each in between | {subject}):
        if task.status == "done" and not task.skipped:
            task.skipped = task.left_out = True
            task.output = None


def go_back(world: World, task: Task, feedback: object) -> None:
    _begin_again(task)
    task.detours += 1
    task.epoch += 1
    task.round, task.decided = 0, False
    reopen.go_to(world, task, str(task.on_failure.step), feedback)


def _begin_again(task: Task) -> None:
    task.generation += 1
    task.failures = task.lost = 0
