"""The definition of a workflow: steps and what each needs, checked whole before it is used."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.retry import MAX_COUNT, RetryPolicy, positive_microseconds
from holdfast.model.text import clean_key, clean_name, digest

MAX_STEPS = 10_000
MAX_PRIORITY = 2**30 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Concurrency:
    """At most `limit` holders of one key at once."""

    key: str
    limit: int = 1

    def __post_init__(self) -> None:
        clean_key("concurrency.key", self.key)
        limit: object = self.limit
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_COUNT:
            raise InvalidInput("concurrency.limit", f"must be a whole number from 1 to {MAX_COUNT}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    id: str
    needs: tuple[str, ...] = ()
    agent: str = "default"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    priority: int = 0
    concurrency: Concurrency | None = None


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """One immutable version of a named graph; `version` is the hash of its content."""

    name: str
    steps: tuple[Step, ...]
    concurrency: Concurrency | None = None

    @classmethod
    def define(
        cls, name: str, steps: tuple[Step, ...], *, concurrency: Concurrency | None = None
    ) -> Self:
        return cls(name=name, steps=steps, concurrency=concurrency)

    def __post_init__(self) -> None:
        """Check the whole graph and raise one error that names every mistake."""
        clean_name("workflow", self.name)
        mistakes = _bad_fields(self)
        if not mistakes:
            mistakes = [*_bad_steps(self.steps), *_bad_needs(self.steps)]
        if not mistakes:
            mistakes = _cycles(self.steps)
        if mistakes:
            raise InvalidDefinition(f"workflow {self.name}", mistakes)

    @cached_property
    def version(self) -> str:
        return digest(self.definition)

    @cached_property
    def definition(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "concurrency": _concurrency(self.concurrency),
                "steps": [_describe(step) for step in self.steps],
            },
            sort_keys=True,
            separators=(",", ":"),
        )


def _describe(step: Step) -> dict[str, object]:
    return {
        "id": step.id,
        "needs": list(step.needs),
        "agent": step.agent,
        "max_attempts": step.retry.max_attempts,
        "max_lost": step.retry.max_lost,
        "backoff": step.retry.backoff,
        "backoff_max": step.retry.backoff_max,
        "timeout": step.timeout,
        "tags": sorted(step.tags),
        "priority": step.priority,
        "concurrency": _concurrency(step.concurrency),
    }


def _concurrency(concurrency: Concurrency | None) -> list[object] | None:
    return None if concurrency is None else [concurrency.key, concurrency.limit]


def _bad_fields(workflow: Workflow) -> list[str]:
    """Fields of a wrong type: nothing else can be said before they are right."""
    steps: object = workflow.steps
    if not isinstance(steps, tuple) or not all(isinstance(step, Step) for step in steps):
        return ["its steps must be a tuple of Step"]
    mistakes = [
        f"step {step.id!r}: {name} must be {words}"
        for step in steps
        for name, kind, words in (
            ("id", str, "text"),
            ("needs", tuple, "a tuple of the names of steps"),
            ("agent", str, "text"),
            ("retry", RetryPolicy, "a RetryPolicy"),
            ("tags", tuple, "a tuple of names"),
            ("priority", int, "a whole number"),
            ("concurrency", Concurrency | None, "a Concurrency"),
        )
        if isinstance(getattr(step, name), bool) or not isinstance(getattr(step, name), kind)
    ]
    mistakes += [
        f"step {step.id!r} needs {need!r}, which is not the name of a step"
        for step in steps
        if isinstance(step.needs, tuple)
        for need in step.needs
        if not isinstance(need, str)
    ]
    if not isinstance(workflow.concurrency, Concurrency | None):
        mistakes.append("its concurrency must be a Concurrency")
    return mistakes


def _bad_steps(steps: tuple[Step, ...]) -> list[str]:
    if not steps:
        return ["has no steps"]
    if len(steps) > MAX_STEPS:
        return [f"has {len(steps)} steps; at most {MAX_STEPS} fit one workflow"]
    mistakes = [
        f"step {name!r} is defined {count} times"
        for name, count in Counter(step.id for step in steps).items()
        if count > 1
    ]
    for step in steps:
        try:
            clean_name("step", step.id)
            clean_name("agent", step.agent)
            for tag in step.tags:
                clean_name("tag", tag)
            if step.timeout is not None:
                positive_microseconds("timeout", step.timeout)
        except InvalidInput as error:
            mistakes.append(f"step {step.id!r}: {error}")
        if not -MAX_PRIORITY <= step.priority <= MAX_PRIORITY:
            mistakes.append(f"step {step.id!r}: priority: must be within {MAX_PRIORITY} of 0")
    return mistakes


def _bad_needs(steps: tuple[Step, ...]) -> list[str]:
    known = [step.id for step in steps]
    mistakes = []
    for step in steps:
        for need in dict.fromkeys(step.needs):
            if need == step.id:
                mistakes.append(f"step {step.id!r} needs itself")
            elif need not in known:
                near = difflib.get_close_matches(str(need), known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                mistakes.append(f"step {step.id!r} needs {need!r}, which is not a step{hint}")
    return mistakes


def _cycles(steps: tuple[Step, ...]) -> list[str]:
    waiting = {step.id: set(step.needs) for step in steps}
    while ready := [name for name, needs in waiting.items() if not needs]:
        for name in ready:
            del waiting[name]
        for needs in waiting.values():
            needs.difference_update(ready)
    if not waiting:
        return []
    return [f"the needs form a cycle: {' → '.join(_one_cycle(waiting))}"]


def _one_cycle(waiting: dict[str, set[str]]) -> list[str]:
    path = [min(waiting)]
    while True:
        following = min(waiting[path[-1]] & waiting.keys())
        if following in path:
            return [*path[path.index(following) :], following]
        path.append(following)
