"""The edge of the engine: what callers pass is checked here, whole, before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.engine.operations import StartRun, TaskRow
from holdfast.engine.slots import RUN_PREFIX, TASK_PREFIX
from holdfast.errors import InvalidInput
from holdfast.ids import Ids, parse_run_id, parse_task_id
from holdfast.model.graph import Concurrency, Step
from holdfast.model.retry import RetryPolicy, to_microseconds
from holdfast.model.run import NewRun
from holdfast.model.status import Hold
from holdfast.model.task import NewTask
from holdfast.model.text import clean_key, clean_name, clean_text, digest, encode_json

MAX_TITLE = 500
MAX_BATCH = 10_000
MAX_INTEGER = 2**31 - 1
MAX_TIME = 2**53
JSON_SCALAR_LIMIT = 64 * 1024


def task_id(value: object, field: str = "task_id") -> str:
    return parse_task_id(clean_text(field, value), field=field)


def run_id(value: object, field: str = "run_id") -> str:
    return parse_run_id(clean_text(field, value), field=field)


def number(field: str, value: object, *, least: int, most: int = MAX_INTEGER) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"must be a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidInput(field, f"must be between {least} and {most}, not {value}")
    return value


def lease(field: str, seconds: float) -> int:
    microseconds = to_microseconds(field, seconds)
    if microseconds == 0:
        raise InvalidInput(field, "must be longer than 0 seconds")
    return microseconds


def moment(field: str, value: object) -> int:
    """A time as microseconds since the epoch, by the database's clock."""
    return number(field, value, least=0, most=MAX_TIME)


def names(field: str, values: Iterable[object]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidInput(field, "must be a list of names, not one text")
    return tuple(dict.fromkeys(clean_name(field, value) for value in values))


def tags(values: Iterable[object]) -> str:
    chosen = sorted(names("tags", values))
    return json.dumps(chosen, separators=(",", ":")) if chosen else "[]"


def hold(value: object) -> Hold:
    known = [each.lower() for each in Hold.__members__]
    if not isinstance(value, str) or value not in known:
        raise InvalidInput("hold", f"{value!r} is not one of {', '.join(known)}")
    return Hold[value.upper()]


def actor(value: object) -> str:
    return clean_name("actor", value)


def new_task(task: NewTask, ids: Ids, *, max_payload: int) -> TaskRow:
    payload = encode_json("payload", task.payload, limit=max_payload)
    needs = tuple(dict.fromkeys(task_id(need, "needs") for need in _listed("needs", task.needs)))
    parent = None if task.parent is None else task_id(task.parent, "parent")
    scheduled = None if task.scheduled_for is None else moment("scheduled_for", task.scheduled_for)
    key = None if task.key is None else clean_key("key", task.key)
    return TaskRow(
        id=ids.task(),
        parent_id=parent,
        step=None if task.step is None else clean_name("step", task.step),
        title=clean_text("title", task.title, limit=MAX_TITLE),
        agent=clean_name("agent", task.agent),
        status="queued" if task.enqueue else "idle",
        needs=needs,
        scheduled_for=scheduled,
        priority=_signed("priority", task.priority),
        position=_signed("position", task.position),
        tags=tags(task.tags),
        key=key,
        body_digest="" if key is None else _body(task, payload),
        payload=payload,
        **_limits(task.retry, task.timeout, task.concurrency),
    )


def new_run(run: NewRun, ids: Ids, *, max_payload: int, actor_name: str) -> StartRun:
    workflow = run.workflow
    given = encode_json("input", run.input, limit=max_payload)
    key = None if run.key is None else clean_key("key", run.key)
    priority = _signed("priority", run.priority)
    identifier = ids.run()
    task_ids = {step.id: ids.task() for step in workflow.steps}
    concurrency = workflow.concurrency
    return StartRun(
        run_id=identifier,
        workflow=workflow.name,
        workflow_version=workflow.version,
        definition=workflow.definition,
        key=key,
        body_digest=digest(workflow.name, given, str(priority)) if key is not None else "",
        input=given,
        priority=priority,
        concurrency_key=None if concurrency is None else RUN_PREFIX + concurrency.key,
        capacity=1 if concurrency is None else concurrency.limit,
        tasks=tuple(
            _step_row(step, identifier, task_ids, priority + step.priority)
            for step in workflow.steps
        ),
        actor=actor_name,
    )


def _step_row(step: Step, run: str, task_ids: Mapping[str, str], priority: int) -> TaskRow:
    return TaskRow(
        id=task_ids[step.id],
        run_id=run,
        step=step.id,
        title=step.id,
        agent=step.agent,
        status="queued",
        needs=tuple(task_ids[need] for need in dict.fromkeys(step.needs)),
        priority=priority,
        tags=tags(step.tags),
        **_limits(step.retry, step.timeout, step.concurrency),
    )


def _limits(
    retry: RetryPolicy, timeout: float | None, concurrency: Concurrency | None
) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "max_lost": retry.max_lost,
        "backoff": to_microseconds("backoff", retry.backoff),
        "backoff_max": to_microseconds("backoff_max", retry.backoff_max),
        "timeout": None if timeout is None else to_microseconds("timeout", timeout),
        "concurrency_key": None if concurrency is None else TASK_PREFIX + concurrency.key,
        "capacity": 1 if concurrency is None else concurrency.limit,
    }


def edits(changes: Mapping[str, object], *, max_payload: int) -> dict[str, object]:
    """The fields of an edit in the terms of the store; an unknown one is refused by name."""
    readers: dict[str, Callable[[object], object]] = {
        "title": lambda value: clean_text("title", value, limit=MAX_TITLE),
        "agent": lambda value: clean_name("agent", value),
        "payload": lambda value: encode_json("payload", value, limit=max_payload),
        "priority": lambda value: _signed("priority", value),
        "position": lambda value: _signed("position", value),
        "tags": lambda value: tags(_listed("tags", value)),
        "max_attempts": lambda value: number("max_attempts", value, least=1),
        "max_lost": lambda value: number("max_lost", value, least=1),
        "timeout": lambda value: to_microseconds("timeout", _float("timeout", value)),
        "scheduled_for": lambda value: None if value is None else moment("scheduled_for", value),
    }
    for name in changes:
        if name not in readers:
            raise InvalidInput(name, f"cannot be edited; one of {', '.join(readers)} can")
    return {name: readers[name](value) for name, value in changes.items()}


def _body(task: NewTask, payload: str) -> str:
    parts = (task.title, task.step, task.agent, task.needs, task.parent, sorted(task.tags))
    rest = (task.scheduled_for, task.priority, task.position)
    return digest(payload, repr(parts), repr(rest), repr(task.retry))


def _signed(field: str, value: object) -> int:
    return number(field, value, least=-MAX_INTEGER // 2, most=MAX_INTEGER // 2)


def _float(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, "must be a number of seconds")
    return value


def _listed(field: str, value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise InvalidInput(field, f"must be a list, not {type(value).__name__}")
    return tuple(value)


def run_hold(value: object) -> Hold:
    """A hold that a caller may put on a run; the engine alone holds for a slot or a failure."""
    chosen = hold(value)
    if chosen in Hold.SLOT | Hold.FAILING:
        raise InvalidInput("hold", f"{value!r} is the engine's own; it comes and goes by itself")
    return chosen
