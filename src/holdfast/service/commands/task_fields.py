"""Task fields: the JSON fields of new tasks and edits, read into values for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import NewTask
from holdfast.model.text import clean_text
from holdfast.model.units import Moment, parse_duration
from holdfast.settings import MEBIBYTE, Settings

_PLAIN_FIELDS = (
    "title",
    "step",
    "agent",
    "payload",
    "parent",
    "priority",
    "position",
    "key",
    "labels",
    "enqueue",
)
_FIELDS = (
    *_PLAIN_FIELDS,
    "workflow",
    "input",
    "prompt",
    "needs",
    "tags",
    "scheduled_for",
    "timeout",
    "max_attempts",
    "max_lost",
    "plan",
)
_KNOWN_FIELDS = frozenset(_FIELDS)
MAX_PROMPT = MEBIBYTE


def read_moment(value: object) -> Any:  # noqa: ANN401 - whatever was written, for the engine to judge
    """Read a moment from JSON: a time in ISO 8601, a duration from now, or microseconds."""
    if isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    return value


def add_prompt(prompt: object, payload: object = None) -> Any:  # noqa: ANN401 - JSON is any value
    """The payload with a prompt in it, for the command or the agent that does the task."""
    text = clean_text("prompt", prompt, limit=MAX_PROMPT)
    if not text.strip():
        raise InvalidInput("prompt", "is empty; say what is to be done, or leave it out")
    if payload is None:
        return {"prompt": text}
    if not isinstance(payload, dict):
        kind = type(payload).__name__
        raise InvalidInput("payload", f"must be an object beside a prompt, not {kind}")
    if payload.get("prompt", text) != text:
        raise InvalidInput("payload", "has another prompt in it; give one of both")
    return {**payload, "prompt": text}


def read_call(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task that is a run of a `workflow`, with its `input` as the payload."""
    if "workflow" not in given:
        if "input" in given:
            raise InvalidInput("input", "is that of a workflow; name it in 'workflow' besides")
        return {}
    for other in ("prompt", "payload", "step"):
        if other in given:
            raise InvalidInput(other, "is not for a task that is a run; its workflow gets 'input'")
    return {"workflow": given["workflow"], "payload": given.get("input")}


def read_changes(fields: Mapping[str, Any]) -> dict[str, object]:
    """Read the fields of an edit into values for the engine; a prompt is a new payload."""
    changes = dict(fields)
    if (prompt := changes.pop("prompt", None)) is not None:
        changes["payload"] = add_prompt(prompt, changes.get("payload"))
    if changes.get("timeout") is not None:
        changes["timeout"] = parse_duration("timeout", changes["timeout"])
    if "scheduled_for" in changes:
        changes["scheduled_for"] = read_moment(changes["scheduled_for"])
    return changes


def read_new_task(fields: Mapping[str, Any], settings: Settings) -> NewTask:
    """Read the fields of a new task; null is absent."""
    given = {name: value for name, value in fields.items() if value is not None}
    if unknown := given.keys() - _KNOWN_FIELDS:
        reason = f"is no field of a task; those are {', '.join(_FIELDS)}"
        raise InvalidInput(min(unknown), reason)
    if "title" not in given:
        raise InvalidInput("title", "is missing")
    more: dict[str, Any] = {name: given[name] for name in _PLAIN_FIELDS if name in given}
    if "prompt" in given:
        more["payload"] = add_prompt(given["prompt"], given.get("payload"))
    more |= read_call(given)
    when: Moment | None = read_moment(given.get("scheduled_for"))
    timeout = given.get("timeout")
    return NewTask(
        **more,
        needs=_read_list("needs", given),
        tags=_read_list("tags", given),
        scheduled_for=when,
        timeout=None if timeout is None else parse_duration("timeout", timeout),
        plan=given.get("plan", False),
        retry=_read_retry(given, settings),
    )


def _read_retry(given: Mapping[str, Any], settings: Settings) -> RetryPolicy:
    usual = _default_policy(
        settings.max_attempts, settings.max_lost, settings.backoff, settings.backoff_max
    )
    own = {name: given[name] for name in ("max_attempts", "max_lost") if name in given}
    return replace(usual, **own) if own else usual


@lru_cache(maxsize=8)
def _default_policy(attempts: int, lost: int, backoff: float, most: float) -> RetryPolicy:
    return RetryPolicy(max_attempts=attempts, max_lost=lost, backoff=backoff, backoff_max=most)


def _read_list(name: str, given: Mapping[str, Any]) -> tuple[Any, ...]:
    value = given.get(name, ())
    if not isinstance(value, list | tuple):
        raise InvalidInput(name, f"must be a list, not {type(value).__name__}")
    return tuple(value)
