"""When everybody does their part, all that is under way comes to an end."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from holdfast.engine.core.operation import Sweep
from holdfast.model.task import Task
from tests.simulation.workflow_requests import Teller

ROUNDS = 400
LONGER_THAN_ANY_LEASE = 30
MADE = {"verdict": "accept", "made": True, "list": ["a"]}
AGENTS, TAGS = ("default", "reviewer"), ("big", "gpu")


def work_off(teller: Teller) -> None:
    """Recover, answer, approve, send and do whatever there is, until nothing moves any more."""
    for _ in range(ROUNDS):
        teller.clock.advance(LONGER_THAN_ANY_LEASE)
        _heard(teller, teller.engine.work.recover.submit())
        _heard(teller, teller.engine.commits.submit(Sweep()))
        moved = [_free(teller, run) for run in teller.runs]
        if not _do(teller) and not any(moved):
            return
    raise AssertionError("it goes on for ever")


def _heard(teller: Teller, reply: Future[Any]) -> Any:  # noqa: ANN401 - whatever was asked
    while teller.engine.commits.step():
        pass
    return reply.result(timeout=0)


def _free(teller: Teller, run: str) -> bool:
    """Lift what people hold; whether anything came of it."""
    engine = teller.engine
    for reason in ("paused", "budget"):
        _heard(teller, engine.runs.unhold.submit(run, reason))
    tasks = [task for task in engine.runs.tasks(run) if not task.terminal]
    return any([_free_task(teller, task) for task in tasks])  # noqa: C419 - every one of them


def _free_task(teller: Teller, task: Task) -> bool:
    tasks = teller.engine.tasks
    lifted = [
        _heard(teller, tasks.unhold.submit(task.id, reason)).ok
        for reason in ("paused", "limit", "question")
        if reason in task.holds.names
    ]
    asked = task.kind == "approval" or "approval" in task.holds.names
    if asked and task.status == "queued":
        lifted.append(_heard(teller, tasks.approve.submit(task.id)).ok)
    if task.status == "idle":
        lifted.append(_heard(teller, tasks.enqueue.submit(task.id)).ok)
    if task.status == "queued" and " " in (task.waits_for or ""):
        # Whom the signal is for may have ended: then nothing else helps.
        lifted.append(_heard(teller, tasks.cancel.submit(task.id)).ok)
    return any(lifted)


def _do(teller: Teller) -> bool:
    for lone in teller.lone:
        for reason in ("paused", "limit", "question"):
            _heard(teller, teller.engine.tasks.unhold.submit(lone, reason))
    claim = teller.engine.work.claim.submit("ann", count=50, agents=AGENTS, tags=TAGS)
    taken = _heard(teller, claim)
    for each in taken:
        _heard(teller, teller.engine.work.complete.submit(each.task.id, each.token, MADE))
    return bool(taken)
