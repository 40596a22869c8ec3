"""What a task remembers of a named side effect.

What a suspended task waits for besides a time, as one text of the store.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.model.result import TransitionResult
from holdfast.model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectRecord:
    """Whether the attempt may act, and what is remembered under the name it gave."""

    answer: TransitionResult
    value: Any = None
    found: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class WakeCondition:
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


CHILDREN = "children"
# PostgreSQL has no room for more in its index. Whoever waits for more hears the rest later.
MAX_AWAITED_TEXT = 2_000


class AwaitedSignals(NamedTuple):
    """Signals to a run or task, and whether the children are waited for as well."""

    target: str
    signals: tuple[str, ...]
    children: bool


def write_awaited(target: str, signals: Collection[str], *, children: bool) -> str | None:
    """`children`, `r_1 go`, or `r_1 ,go,stop,*children`; no name has a comma or a star in it."""
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
