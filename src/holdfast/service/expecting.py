"""Waiting for a version that somebody has seen and this store has not: a little, and not long."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.retry import RetryPolicy

RETRY = RetryPolicy(max_attempts=5, backoff=0.02, backoff_max=0.2)


def await_version(engine: Engine, task_id: str, version: int) -> None:
    """Look again while a task is before a version, each time later, and not at one that ended."""
    for look in range(1, RETRY.max_attempts):
        task = engine.tasks.get(task_id)
        if task.version >= version or task.finished_at is not None:
            return
        engine.clock.sleep(RETRY.delay(look, engine.randomness.random()))
