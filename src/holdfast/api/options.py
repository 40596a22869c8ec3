"""The options of a task or a step, as a decorator takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from holdfast.errors import InvalidInput
from holdfast.model.duration import parse_duration
from holdfast.model.graph import Concurrency
from holdfast.model.retry import RetryPolicy


class StepOptions(TypedDict, total=False):
    agent: str
    retry: RetryPolicy
    timeout: float | None
    tags: tuple[str, ...]
    priority: int
    concurrency: Concurrency | None


_RETRY = ("max_attempts", "max_lost", "backoff", "backoff_max")
_KNOWN = (*_RETRY, "agent", "timeout", "tags", "priority", "concurrency")


def step_options(given: Mapping[str, Any]) -> StepOptions:
    """Read `max_attempts=5, timeout="2m", …`; an unknown option is refused by name."""
    for name in given:
        if name not in _KNOWN:
            raise InvalidInput(name, f"is no option; known are {', '.join(_KNOWN)}")
    options = StepOptions(retry=RetryPolicy(**_retry(given)))
    if "agent" in given:
        options["agent"] = given["agent"]
    if given.get("timeout") is not None:
        options["timeout"] = parse_duration("timeout", given["timeout"])
    if "tags" in given:
        options["tags"] = tuple(given["tags"])
    if "priority" in given:
        options["priority"] = given["priority"]
    if "concurrency" in given:
        options["concurrency"] = read_concurrency(given["concurrency"])
    return options


def read_concurrency(given: Concurrency | Sequence[Any] | str | None) -> Concurrency | None:
    """A key alone means one at a time; a pair is a key and its limit."""
    match given:
        case None | Concurrency():
            return given
        case str():
            return Concurrency(key=given)
        case [key, limit]:
            return Concurrency(key=key, limit=limit)
        case _:
            raise InvalidInput("concurrency", f"{given!r} is neither a key nor (key, limit)")


def _retry(given: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: given[name] for name in _RETRY[:2] if name in given}
    waits = {name: parse_duration(name, given[name]) for name in _RETRY[2:] if name in given}
    return counts | waits
