"""Rehearsals: runs of a workflow file carried out by stubs, with outputs that fit each schema."""

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
from holdfast.service.commands.request_errors import require_accepted
from holdfast.service.queries.queries import Queries

SAMPLE_ITEMS = 2
# No text or list of a sample is longer: no output may be longer either.
MAX_LENGTH = 1 << 20
_KEYWORDS_BY_TYPE = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems"),
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
STUB_NAME = "rehearsal"


def make_sample(schema: Any) -> Any:  # noqa: ANN401 - JSON Schema, and JSON
    """A plain value that fits a JSON Schema; where none is found, one that comes near."""
    if not isinstance(schema, Mapping):
        return None
    nearest = None
    for number, value in enumerate(_make_candidates(schema)):
        if fits(schema, value):
            return value
        nearest = value if number == 0 else nearest
    return nearest


def _make_candidates(schema: Schema) -> Iterator[Any]:
    for fixed in ("const", "default"):
        if fixed in schema:
            yield schema[fixed]
    yield from schema.get("enum", ())
    around = {name: value for name, value in schema.items() if name != "anyOf"}
    for option in schema.get("anyOf", ()):
        yield make_sample({**around, **option})
        yield make_sample(option)
    for kind in _list_types(schema):
        yield from _MAKERS[kind](schema)


def _list_types(schema: Schema) -> list[str]:
    """The types to try; without `type`, types with a keyword in the schema come first."""
    wanted = schema.get("type")
    if wanted is not None:
        return [wanted] if isinstance(wanted, str) else list(wanted)
    told = [
        kind for kind, names in _KEYWORDS_BY_TYPE.items() if any(name in schema for name in names)
    ]
    return [*told, "null", *TYPES]


def _make_texts(schema: Schema) -> Iterator[str]:
    yield "…" * _choose_length(schema, 1, "minLength", "maxLength")


def _make_numbers(schema: Schema) -> Iterator[float]:
    yield 1.0
    yield from _make_whole_numbers(schema)
    low = [*_read_limits(schema, "minimum"), *_read_limits(schema, "exclusiveMinimum")]
    high = [*_read_limits(schema, "maximum"), *_read_limits(schema, "exclusiveMaximum")]
    yield from (*low, *high)
    if low and high:
        yield max(low) + (min(high) - max(low)) / 2


def _make_whole_numbers(schema: Schema) -> Iterator[int]:
    yield 1
    yield from map(math.ceil, _read_limits(schema, "minimum"))
    yield from (math.floor(limit) + 1 for limit in _read_limits(schema, "exclusiveMinimum"))
    yield from map(math.floor, _read_limits(schema, "maximum"))
    yield from (math.ceil(limit) - 1 for limit in _read_limits(schema, "exclusiveMaximum"))


def _make_lists(schema: Schema) -> Iterator[list[Any]]:
    count = _choose_length(schema, SAMPLE_ITEMS, "minItems", "maxItems")
    yield [make_sample(schema.get("items", {})) for _ in range(count)]
    yield []


def _make_objects(schema: Schema) -> Iterator[dict[str, Any]]:
    known, more = schema.get("properties", {}), schema.get("additionalProperties")
    wanted = schema.get("required", ())
    made = {name: make_sample(inner) for name, inner in known.items()}
    made |= {name: make_sample(more) for name in wanted if name not in known}
    yield made
    # A field that is not required is better left out than wrong.
    yield {
        name: value for name, value in made.items() if name in wanted or fits(known[name], value)
    }


def _choose_length(schema: Schema, usual: int, least: str, most: str) -> int:
    low = max([usual, *map(math.ceil, _read_limits(schema, least))])
    return max(0, min([low, MAX_LENGTH, *map(math.floor, _read_limits(schema, most))]))


def _read_limits(schema: Schema, name: str) -> list[float]:
    """The limit of that name, if the schema has one that is finite; else an empty list."""
    limit = schema.get(name)
    return [] if limit is None or not abs(limit) <= sys.float_info.max else [limit]


_MAKERS: dict[str, Callable[[Schema], Iterator[Any]]] = {
    "string": _make_texts,
    "integer": _make_whole_numbers,
    "number": _make_numbers,
    "boolean": lambda _: iter((True, False)),
    "null": lambda _: iter((None,)),
    "array": _make_lists,
    "object": _make_objects,
}


class WorkflowRehearsal:
    """Completes and approves the tasks of a run, for agents and people, until none is left."""

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

    def play_run(self) -> None:
        while self._complete_ready_tasks() or self._approve_waiting_tasks():
            pass

    def _complete_ready_tasks(self) -> bool:
        claimed = (
            self._engine.work.claim(STUB_NAME, agents=self._agents, tags=self._tags)
            if self._agents
            else []
        )
        for each in claimed:
            output = make_stub_output(self._steps[str(each.workflow), str(each.step)], each)
            require_accepted(
                each.task.id, self._engine.work.complete(each.task.id, each.token, output)
            )
        return bool(claimed)

    def _approve_waiting_tasks(self) -> bool:
        asked = self._queries.tasks_for_people()
        for task in asked:
            require_accepted(task["id"], self._engine.tasks.approve(task["id"], actor=STUB_NAME))
        return bool(asked)


def make_stub_output(step: Step, assignment: Assignment) -> Any:  # noqa: ANN401 - JSON is any value
    """The output of a stub: a sample of the declared outputs; a verifier accepts as well."""
    work = assignment.work
    declared = None if work is None else work.outputs
    plain = {"text": "…"} if work is not None and work.runs_program else None
    given = plain if declared is None else make_sample(declared)
    if step.verifies is None:
        return given
    return (given if isinstance(given, dict) else {}) | {"verdict": ACCEPT}
