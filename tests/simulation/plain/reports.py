"""The plain model of what workers report: fenced by attempt, answered again when repeated."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain import failures, verdicts
from tests.simulation.plain.world import Answer, Task, World

TOLD = frozenset({"completed", "failed", "rejected"})
LOST = "lost: the worker stopped renewing its lease"


def complete(world: World, task_id: str, fence: int, output: object) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("completed", output))
    if task.verifies is not None:
        return verdicts.judge(world, task, output)
    world.leave(task, "done", ("completed", output))
    task.output, task.error = output, None
    return ("ok", "done")


def fail(  # noqa: PLR0913 - as many things are said of a failure
    world: World, task_id: str, fence: int, error: object, *, retryable: bool, jitter: float
) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("failed", error))
    failures.fail(world, task, error, retryable=retryable, jitter=jitter)
    return ("ok", task.status)


def release(world: World, task_id: str, fence: int, until: int | None) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("released", None))
    world.leave(task, "queued", ("released", None))
    task.scheduled_for = until
    return ("ok", "queued")


def ask(world: World, task_id: str, fence: int, question: object) -> Answer:
    task = world.tasks.get(task_id)
    if task is None or not _holds_lease(task, fence):
        return _late(task, fence, ("asked", None))
    world.leave(task, "queued", ("released", None))
    task.holds |= Hold.QUESTION
    task.question, task.scheduled_for = question, None
    return ("ok", "queued")


def expired(world: World) -> list[Task]:
    return [
        task
        for task in world.tasks.values()
        if task.expires_at is not None and task.expires_at <= world.now
    ]


def recover(world: World) -> list[Answer]:
    found = sorted(expired(world), key=lambda task: task.id)
    told: dict[str, Answer] = {}
    # Who begins again further up comes last: whatever is lost with it is lost before that.
    for task in sorted(found, key=lambda task: task.on_failure.action == "goto"):
        failures.lose(world, task, LOST)
        told[task.id] = ("ok", task.status)
    return [told[task.id] for task in found]


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
    reasons = dict.fromkeys(TOLD, "already_terminal") | {"cancelled": "cancelled"}
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
    if "cancelled" in {outcome, task.status}:
        return ("cancelled", task.status)
    if outcome in TOLD:
        return ("already_terminal", task.status)
    ended = {"done": "already_passed", "failed": "already_terminal"}
    overtaken = ended.get(task.status, "already_claimed")
    return (overtaken if task.attempt > fence else "lease_expired", task.status)


def _holds_lease(task: Task, fence: int) -> bool:
    return task.status == "running" and task.attempt == fence


def _late(task: Task | None, fence: int, said: tuple[str, object]) -> Answer:
    if task is None:
        return ("not_found", None)
    ending = task.endings.get(fence, ("", None))
    if ending[0] == "cancelled":
        return ("already_terminal", task.status)
    told = "completed" if ending[0] == "rejected" else ending[0]
    if (told, ending[1]) == said:
        return ("repeated", task.status)
    if ending[0] in TOLD and (ending[0] != "failed" or task.attempt == fence):
        return ("result_conflict", task.status)
    return ("stale_token", task.status)
