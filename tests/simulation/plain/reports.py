"""The plain model of what workers report: fenced by attempt, answered again when repeated."""

from __future__ import annotations

from tests.simulation.plain.world import Answer, Task, World

LOST = "lost: the worker stopped renewing its lease"


def complete(world: World, task_id: str, fence: int, output: object) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("completed", output))
    _leave(world, task, "done", ("completed", output))
    task.output, task.error = output, None
    return ("ok", "done")


def fail(  # noqa: PLR0913 - as many things are said of a failure
    world: World, task_id: str, fence: int, error: object, *, retryable: bool, jitter: float
) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("failed", error))
    task.failures += 1
    again = retryable and task.failures < task.max_attempts
    _leave(world, task, "queued" if again else "failed", ("failed", error))
    delay = min(task.backoff_max, task.backoff * 2 ** (task.failures - 1))
    task.scheduled_for = world.now + int(jitter * delay) if again else None
    task.output, task.error = None, error
    return ("ok", task.status)


def release(world: World, task_id: str, fence: int, until: int | None) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("released", None))
    _leave(world, task, "queued", ("released", None))
    task.scheduled_for = until
    return ("ok", "queued")


def expired(world: World) -> list[Task]:
    return [
        task
        for task in world.tasks.values()
        if task.expires_at is not None and task.expires_at <= world.now
    ]


def recover(world: World) -> list[Answer]:
    answers: list[Answer] = []
    for task in sorted(expired(world), key=lambda task: task.id):
        task.lost += 1
        _leave(world, task, "queued" if task.lost < task.max_lost else "failed", ("lost", None))
        task.scheduled_for, task.error = None, LOST
        answers.append(("ok", task.status))
    return answers


def renew(world: World, task_id: str, fence: int, lease: int) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if _holds_lease(task, fence):
        if task.expires_at is None or task.expires_at <= world.now:
            return ("lease_expired", "running")
        task.expires_at = world.now + lease
        return ("ok", "running")
    outcome, _ = task.endings.get(fence, ("", None))
    reasons = {"cancelled": "cancelled", "completed": "already_terminal"}
    reasons["failed"] = "already_terminal"
    return (reasons.get(outcome, "stale_token"), task.status)


def guard(world: World, task_id: str, fence: int) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if _holds_lease(task, fence):
        alive = task.expires_at is not None and task.expires_at > world.now
        return ("ok" if alive else "lease_expired", "running")
    if fence == 0:
        return ("stale_token", task.status)
    outcome, _ = task.endings.get(fence, ("", None))
    if outcome == "cancelled":
        return ("cancelled", task.status)
    if outcome in {"completed", "failed"}:
        return ("already_terminal", task.status)
    return ("already_claimed" if task.attempt > fence else "lease_expired", task.status)


def _holds_lease(task: Task, fence: int) -> bool:
    return task.status == "running" and task.attempt == fence


def _leave(world: World, task: Task, status: str, ending: tuple[str, object]) -> None:
    task.leave_running(*ending)
    task.status = status
    if task.slot is not None:
        world.freed[task.slot] += 1


def _late(task: Task | None, fence: int, said: tuple[str, object]) -> Answer:
    if task is None:
        return ("not_found", None)
    ending = task.endings.get(fence, ("", None))
    if ending[0] == "cancelled":
        return ("already_terminal", task.status)
    if ending == said:
        return ("repeated", task.status)
    if ending[0] in {"completed", "failed"}:
        return ("result_conflict", task.status)
    return ("stale_token", task.status)
