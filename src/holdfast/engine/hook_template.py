"""What every task of a hook has in common, as the store keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.engine import validation
from holdfast.engine.asked import PLAIN, TaskRow
from holdfast.model.retry import MAX_COUNT, MAX_SECONDS, MICROSECONDS
from holdfast.model.text import clean_name, clean_text

Reader = Callable[[object], object]


def write(row: TaskRow) -> str:
    return json.dumps({name: getattr(row, name) for name in _READERS}, sort_keys=True)


def read(text: str) -> dict[str, Any]:
    """The fields of a task; what a newer release has added is left out, what is odd is refused."""
    template = {**PLAIN, **json.loads(text)}
    return {name: reader(template[name]) for name, reader in _READERS.items()}


def _whole(field: str, *, least: int, most: int) -> Reader:
    return lambda value: validation.number(field, value, least=least, most=most)


def _optional(reader: Reader) -> Reader:
    return lambda value: None if value is None else reader(value)


_MOST = MAX_SECONDS * MICROSECONDS
_READERS: dict[str, Reader] = {
    "agent": lambda value: clean_name("agent", value),
    "priority": lambda value: validation.signed("priority", value),
    "tags": lambda value: validation.tags(json.loads(clean_text("tags", value))),
    "timeout": _optional(_whole("timeout", least=1, most=_MOST)),
    "concurrency_key": _optional(lambda value: clean_text("concurrency_key", value)),
    "capacity": _whole("capacity", least=1, most=validation.MAX_INTEGER),
    "max_attempts": _whole("max_attempts", least=1, most=MAX_COUNT),
    "max_lost": _whole("max_lost", least=1, most=MAX_COUNT),
    "backoff": _whole("backoff", least=0, most=_MOST),
    "backoff_max": _whole("backoff_max", least=0, most=_MOST),
}
