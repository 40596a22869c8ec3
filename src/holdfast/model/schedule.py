"""Schedules: as a caller asks for one, and as the store knows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.model.cron_ticks import MissedTicks
from holdfast.model.frozen_record import ReadableRecord
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask

# The prefix of the keys, and of the actor, of the tasks and runs that ticks start.
SCHEDULE_PREFIX = "schedule:"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSchedule:
    """A schedule as a caller asks for it; with a `run`, the schedule ends when that run ends."""

    name: str
    cron: str
    starts: NewTask | NewRun
    zone: str = "UTC"
    missed: str = "one"
    run: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Schedule(ReadableRecord):
    """A schedule as the store knows it: it starts runs of a workflow, or tasks of a function.

    A value that only a newer release can read stays as it is.
    """

    name: str
    cron: str
    zone: str
    missed: MissedTicks | str
    workflow: str | None
    task: str | None
    input: Any
    run_id: str | None
    next_at: datetime | None
    last_at: datetime | None
    last_error: str | None
    version: int
    created_at: datetime

    @property
    def paused(self) -> bool:
        """Whether the schedule has no tick until it is resumed."""
        return self.next_at is None
