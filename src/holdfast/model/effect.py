"""Effects: the record of a named side effect, and the wake condition of a suspended task.

The store keeps the signals and children that a suspended task waits for as one text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.model.result import TransitionResult
from holdfast.model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectRecord:
    """The answer to an attempt that names an effect, and the value kept under that name."""

    answer: TransitionResult
    value: Any = None
    found: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class WakeCondition:
    """The first of a time, signals, or the end of its children wakes a suspended task."""

    until: int | None = None
    target: str | None = None
    signals: tuple[str, ...] = ()
    children: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A child of a waiting task, as it ended."""

    id: str
    status: Status
    output: Any = None
    error: Any = None


CHILDREN = "children"
# PostgreSQL has no room for more in its index. Names that do not fit are heard later.
MAX_AWAITED_TEXT = 2_000


class AwaitedSignals(NamedTuple):
    """Signals to a run or task, and whether the task waits for its children as well."""

    target: str
    signals: tuple[str, ...]
    children: bool


def write_awaited(target: str, signals: Collection[str], *, children: bool) -> str | None:
    """The text of the store: `children`, `r_1 go`, or `r_1 ,go,stop,*children`.

    No name of a signal has a comma or a star in it.
    """
    if not signals:
        return CHILDREN if children else None
    names = sorted(set(signals))
    if names[1:] or children:
        text = f"{target} ,"
        for name in names:
            if len(text) + len(name) < MAX_AWAITED_TEXT:
                text += f"{name},"
        return f"{text}*{CHILDREN}" if children else text
    return f"{target} {names[0]}"


def read_awaited(text: str) -> AwaitedSignals:
    target, _, rest = text.partition(" ")
    names = [name for name in rest.split(",") if name]
    children = text == CHILDREN or f"*{CHILDREN}" in names
    return AwaitedSignals(target, tuple(name for name in names if name != f"*{CHILDREN}"), children)
