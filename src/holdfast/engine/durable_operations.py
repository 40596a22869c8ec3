"""What a running function asks for itself: a question, effects, waits, signals, children."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation, Report, TaskRow
from holdfast.engine.sheet import measure

# Names, each with its JSON.
Notes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask(Report):
    """Give the task back until somebody answers; `notes` are remembered with it."""

    question: str
    notes: Notes = ()

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.question, *(value for _, value in self.notes))


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordEffect(Report):
    name: str
    value: str
    # The bytes of a file that is kept with it.
    beside: int = 0

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.value,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspend(Report):
    """Give the task back until a time or what it waits for; `notes` are remembered with it."""

    until: int | None = None
    awaited: str | None = None
    notes: Notes = ()

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(value for _, value in self.notes)


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeSignal(Report):
    target: str
    signal: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Spawn(Report):
    """Children of a running attempt, made once: their ids are remembered under `name`."""

    name: str
    tasks: tuple[TaskRow, ...]
    actor: str

    @property
    def size(self) -> int:
        return measure(self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class SendSignal(Operation):
    id: str
    target: str
    signal: str
    payload: str
    key: str | None
    actor: str

    @property
    def keys(self) -> Keys:
        return (self.target,)

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.payload,)
