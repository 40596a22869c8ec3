"""The tasks that stand for the steps of a run, or for the steps of one item of a loop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.engine.asked import TaskRow
from holdfast.engine.slots import TASK_PREFIX
from holdfast.ids import Ids
from holdfast.model.retry import RetryPolicy, positive_microseconds, to_microseconds
from holdfast.model.step import Concurrency, Step, givers, links


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where new tasks belong: a run, and the item of a loop they are the body of."""

    run_id: str
    priority: int
    parent_id: str | None = None
    parent_epoch: int | None = None
    item: int | None = None


def draw(steps: tuple[Step, ...], place: Place, ids: Ids) -> tuple[TaskRow, ...]:
    known = {step.id: ids.task() for step in steps}
    needs, giving = links(steps), givers(steps)
    return tuple(
        TaskRow(
            id=known[step.id],
            kind=step.kind,
            run_id=place.run_id,
            parent_id=place.parent_id,
            parent_epoch=place.parent_epoch,
            item=None if step.for_each is not None else place.item,
            step=step.id,
            title=step.approval or step.id,
            agent=step.agent,
            status="queued",
            needs=tuple(known[need] for need in needs[step.id]),
            priority=place.priority + step.priority,
            tags=write_tags(step.tags),
            conditional=step.when is not None,
            gives=step.id in giving,
            verifies=None if step.verifies is None else known[step.verifies],
            max_rounds=step.max_rounds,
            on_failure=step.on_failure.action,
            **limits(step.retry, step.timeout, step.concurrency),
        )
        for step in steps
    )


def limits(
    retry: RetryPolicy, timeout: float | None, concurrency: Concurrency | None
) -> dict[str, Any]:
    """Budgets, time and concurrency in the terms of the store."""
    return _budgets(retry) | {
        "timeout": None if timeout is None else positive_microseconds("timeout", timeout),
        "concurrency_key": None if concurrency is None else TASK_PREFIX + concurrency.key,
        "capacity": 1 if concurrency is None else concurrency.limit,
    }


@lru_cache(maxsize=100)
def _budgets(retry: RetryPolicy) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "max_lost": retry.max_lost,
        "backoff": to_microseconds("backoff", retry.backoff),
        "backoff_max": to_microseconds("backoff_max", retry.backoff_max),
    }


def write_tags(tags: tuple[str, ...]) -> str:
    return json.dumps(sorted(dict.fromkeys(tags)), separators=(",", ":")) if tags else "[]"
