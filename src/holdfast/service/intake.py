"""Tasks as front ends write them: plain fields of JSON, made into what the engine is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.duration import Moment, parse_duration
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import NewTask
from holdfast.settings import Settings

_PLAIN = ("title", "step", "agent", "payload", "parent", "priority", "position", "key", "enqueue")
_FIELDS = (*_PLAIN, "needs", "tags", "scheduled_for", "timeout", "max_attempts", "max_lost", "plan")


def read_moment(value: object) -> Any:  # noqa: ANN401 - whatever was written, for the engine to judge
    """A moment as JSON has it: a time in ISO 8601, a duration from now, or microseconds."""
    if isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    return value


def read_changes(fields: Mapping[str, Any]) -> dict[str, object]:
    """The fields of an edit, as the engine takes them."""
    changes = dict(fields)
    if changes.get("timeout") is not None:
        changes["timeout"] = parse_duration("timeout", changes["timeout"])
    if "scheduled_for" in changes:
        changes["scheduled_for"] = read_moment(changes["scheduled_for"])
    return changes


def read_new_task(fields: Mapping[str, Any], settings: Settings) -> NewTask:
    """A task to be made; null is absent."""
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given:
        if name not in _FIELDS:
            raise InvalidInput(name, f"is no field of a task; those are {', '.join(_FIELDS)}")
    if "title" not in given:
        raise InvalidInput("title", "is missing")
    more: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    when: Moment | None = read_moment(given.get("scheduled_for"))
    timeout = given.get("timeout")
    return NewTask(
        **more,
        needs=_several("needs", given),
        tags=_several("tags", given),
        scheduled_for=when,
        timeout=None if timeout is None else parse_duration("timeout", timeout),
        plan=given.get("plan", False),
        retry=RetryPolicy(
            max_attempts=given.get("max_attempts", settings.max_attempts),
            max_lost=given.get("max_lost", settings.max_lost),
            backoff=settings.backoff,
            backoff_max=settings.backoff_max,
        ),
    )


def _several(name: str, given: Mapping[str, Any]) -> tuple[Any, ...]:
    value = given.get(name, ())
    if not isinstance(value, list | tuple):
        raise InvalidInput(name, f"must be a list, not {type(value).__name__}")
    return tuple(value)
