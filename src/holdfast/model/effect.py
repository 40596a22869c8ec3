"""What a task remembers of a named side effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.model.result import TransitionResult
from holdfast.model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """Whether the attempt may act, and what is remembered under the name it gave."""

    answer: TransitionResult
    value: Any = None
    found: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """What a suspended task waits for: whatever comes first of a time, signals, its children."""

    until: int | None = None
    target: str | None = None
    signals: tuple[str, ...] = ()
    children: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    id: str
    status: Status
    output: Any = None
    error: Any = None
