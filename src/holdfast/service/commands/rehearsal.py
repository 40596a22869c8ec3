"""A rehearsal: a workflow file carried out by stubs that give what each step declares.

Values made up for a declared shape: the plainest of each kind that fits it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.json_schema import TYPES, Schema, fits
from holdfast.model.status import TaskKind
from holdfast.model.task import Assignment
from holdfast.model.verdict import ACCEPT
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.step import all_steps
from holdfast.service.commands.request_errors import accepted
from holdfast.service.queries.queries import Queries

ITEMS = 2
# What no output may be as long as is not made up either.
LONGEST = 1 << 20
_TELLS = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems"),
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}


def sample(schema: Any) -> Any:  # noqa: ANN401 - JSON Schema, and JSON
    """A value that a JSON Schema describes; where none is found, one that comes near."""
    if not isinstance(schema, Mapping):
        return None
    nearest = None
    for number, value in enumerate(_offers(schema)):
        if fits(schema, value):
            return value
        nearest = value if number == 0 else nearest
    return nearest


def _offers(schema: Schema) -> Iterator[Any]:
    for fixed in ("const", "default"):
        if fixed in schema:
            yield schema[fixed]
    yield from schema.get("enum", ())
    around = {name: value for name, value in schema.items() if name != "anyOf"}
    for option in schema.get("anyOf", ()):
        yield sample({**around, **option})
        yield sample(option)
    for kind in _kinds(schema):
        yield from _MAKERS[kind](schema)


def _kinds(schema: Schema) -> list[str]:
    """The types it may have; where it does not say, those that it says something of come first."""
    wanted = schema.get("type")
    if wanted is not None:
        return [wanted] if isinstance(wanted, str) else list(wanted)
    told = [kind for kind, names in _TELLS.items() if any(name in schema for name in names)]
    return [*told, "null", *TYPES]


def _texts(schema: Schema) -> Iterator[str]:
    yield "…" * _between(schema, 1, "minLength", "maxLength")


def _numbers(schema: Schema) -> Iterator[float]:
    yield 1.0
    yield from _whole_numbers(schema)
    low = [*_limits(schema, "minimum"), *_limits(schema, "exclusiveMinimum")]
    high = [*_limits(schema, "maximum"), *_limits(schema, "exclusiveMaximum")]
    yield from (*low, *high)
    if low and high:
        yield max(low) + (min(high) - max(low)) / 2


def _whole_numbers(schema: Schema) -> Iterator[int]:
    yield 1
    yield from map(math.ceil, _limits(schema, "minimum"))
    yield from (math.floor(limit) + 1 for limit in _limits(schema, "exclusiveMinimum"))
    yield from map(math.floor, _limits(schema, "maximum"))
    yield from (math.ceil(limit) - 1 for limit in _limits(schema, "exclusiveMaximum"))


def _lists(schema: Schema) -> Iterator[list[Any]]:
    count = _between(schema, ITEMS, "minItems", "maxItems")
    yield [sample(schema.get("items", {})) for _ in range(count)]
    yield []


def _objects(schema: Schema) -> Iterator[dict[str, Any]]:
    known, more = schema.get("properties", {}), schema.get("additionalProperties")
    wanted = schema.get("required", ())
    made = {name: sample(inner) for name, inner in known.items()}
    made |= {name: sample(more) for name in wanted if name not in known}
    yield made
    # What need not be there is better left out than wrong.
    yield {
        name: value for name, value in made.items() if name in wanted or fits(known[name], value)
    }


def _between(schema: Schema, usual: int, least: str, most: str) -> int:
    low = max([usual, *map(math.ceil, _limits(schema, least))])
    return max(0, min([low, LONGEST, *map(math.floor, _limits(schema, most))]))


def _limits(schema: Schema, name: str) -> list[float]:
    """The limit of that name, if there is one that can be reckoned with."""
    limit = schema.get(name)
    return [] if limit is None or not abs(limit) <= sys.float_info.max else [limit]


_MAKERS: dict[str, Callable[[Schema], Iterator[Any]]] = {
    "string": _texts,
    "integer": _whole_numbers,
    "number": _numbers,
    "boolean": lambda _: iter((True, False)),
    "null": lambda _: iter((None,)),
    "array": _lists,
    "object": _objects,
}

STUB = "rehearsal"


class Rehearsal:
    """Plays every agent and every person of a run until nothing of it can move."""

    def __init__(self, engine: Engine, queries: Queries, workflow: Workflow) -> None:
        self._engine = engine
        self._queries = queries
        self._steps = {
            (flow.name, step.id): step
            for flow in workflow.with_called_workflows
            for step in all_steps(flow.steps)
        }
        work = [step for step in self._steps.values() if step.kind is TaskKind.WORK]
        self._agents = sorted({step.agent for step in work})
        self._tags = sorted({tag for step in work for tag in step.tags})

    def play(self) -> None:
        while self._work() or self._approve():
            pass

    def _work(self) -> bool:
        claimed = (
            self._engine.work.claim(STUB, agents=self._agents, tags=self._tags)
            if self._agents
            else []
        )
        for each in claimed:
            output = give(self._steps[str(each.workflow), str(each.step)], each)
            accepted(each.task.id, self._engine.work.complete(each.task.id, each.token, output))
        return bool(claimed)

    def _approve(self) -> bool:
        asked = self._queries.for_people()
        for task in asked:
            accepted(task["id"], self._engine.tasks.approve(task["id"], actor=STUB))
        return bool(asked)


def give(step: Step, assignment: Assignment) -> Any:  # noqa: ANN401 - JSON is any value
    """What a stub gives for a step: of a verifier a yes, of others what they declare."""
    declared = None if assignment.work is None else assignment.work.outputs
    given = None if declared is None else sample(declared)
    if step.verifies is None:
        return given
    return (given if isinstance(given, dict) else {}) | {"verdict": ACCEPT}
