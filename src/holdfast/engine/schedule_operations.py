"""What is asked of schedules: keep, pause, resume and remove one, and fire the ticks of one."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import LEAST, Keys, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleOperation(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (f"schedule:{self.name}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class PutSchedule(ScheduleOperation):
    """A schedule that passed every check; what it starts is a run when it names a workflow."""

    cron: str
    zone: str
    missed: str
    workflow: str | None = None
    workflow_version: str | None = None
    definition: str | None = None
    called: frozenset[tuple[str, str, str]] = frozenset()
    template: str
    input: str
    run_id: str | None
    body_digest: str
    next_at: int

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.template, self.input, self.definition)


@dataclass(frozen=True, kw_only=True, slots=True)
class SteerSchedule(ScheduleOperation):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class PauseSchedule(SteerSchedule):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class ResumeSchedule(SteerSchedule):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveSchedule(SteerSchedule):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick(ScheduleOperation):
    """Fire some ticks of a schedule as it was at a version, and wait for the one after them."""

    version: int
    ticks: tuple[int, ...]
    next_at: int | None
    problem: str | None = None
    input_size: int = 0

    @property
    def size(self) -> int:
        return LEAST + self.input_size * len(self.ticks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fired:
    """What a tick started; nothing and no problem when somebody else had fired it."""

    started: tuple[str, ...] = ()
    problem: str | None = None
