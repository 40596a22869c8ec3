"""A daily schedule, and the days of the tests' clock."""

from __future__ import annotations

from typing import Any

from holdfast import NewSchedule, NewTask
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.task import Task

NINE = 9 * 3_600 * MICROSECONDS
HOUR, DAY = 3_600 * MICROSECONDS, 86_400 * MICROSECONDS
# The day on which the tests' clock begins is a Sunday.
SUNDAY = 1_750_000_000 // 86_400 * DAY


def daily(**fields: Any) -> NewSchedule:
    given: dict[str, Any] = {"name": "daily", "cron": "0 9 * * *", **fields}
    given.setdefault("starts", NewTask(title="report", payload={"to": "all"}))
    return NewSchedule(**given)


def move_to(clock: ManualClock, day: int, offset: int = NINE) -> None:
    clock.set(SUNDAY + day * DAY + offset)


def fired(engine: Engine, title: str = "report") -> list[Task]:
    return [task for task in reversed(engine.tasks.list(limit=1_000)) if task.title == title]


def keys(engine: Engine) -> list[str | None]:
    return [task.key for task in fired(engine)]
