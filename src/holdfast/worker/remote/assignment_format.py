"""Assignment format: an assignment as JSON, with the data that its executors ask for.

A worker makes paths, arguments, headers and lines of its log from these fields. So each field is
checked before it is used: a wrong type or form raises `InvalidInput`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from holdfast.definition.keys import METHODS, STRATEGIES
from holdfast.engine.read import pages
from holdfast.errors import InvalidInput
from holdfast.model.frozen_record import make_record
from holdfast.model.moment import count_microseconds, to_datetime
from holdfast.model.retry import positive_microseconds
from holdfast.model.task import Assignment, Task
from holdfast.model.text import MAX_TEXT, clean_name, clean_text, encode_json
from holdfast.model.trace import clean_trace_id
from holdfast.model.workflow.declarations import (
    HttpCall,
    Merge,
    StepWork,
    Workspace,
)
from holdfast.settings import AgentUse

FieldCheck = Callable[[str, object], Any]
LARGEST_NUMBER = 2**53
LONGEST_TEXT = 4 * 2**20
MOST_JSON = 64 * 2**20
MOST_PARTS = 10_000
_TOKEN = re.compile(r"([1-9][0-9]{0,9})\.[0-9a-f]{32}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
PackedAssignment = dict[str, Any]

# The codes of a renewal that failed without a refusal of the engine: the renewal is invalid, or it
# is not written yet and may be sent again.
INVALID_CODE, UNAVAILABLE_CODE = "invalid_input", "store_unavailable"

_TASK_FIELDS = (
    "id",
    "run_id",
    "step",
    "title",
    "agent",
    "item",
    "timeout",
    "payload",
)
_TASK_COUNTS = ("attempt", "failures", "lost", "epoch", "round")
_STEP_FIELDS = ("workflow", "workflow_version", "is_step", "step", "run_id", "item_number")
_ASSIGNMENT_FIELDS = (*_STEP_FIELDS, "timeout", "usd_per_attempt")
_VALUE_FIELDS = ("payload", "input", "item", "needs", "feedback", "own_feedback")


def whole_number(field: str, value: object) -> int:
    return pages.number(field, value, least=0, most=LARGEST_NUMBER)


def moment(field: str, value: object) -> datetime:
    return to_datetime(whole_number(field, value))


def fence(field: str, value: object) -> int:
    return pages.number(field, value, least=1)


def name(field: str, value: object) -> str:
    return clean_name(field, value)


def task_id(field: str, value: object) -> str:
    return pages.task_id(value, field)


def run_id(field: str, value: object) -> str:
    return pages.run_id(value, field)


def single_line(field: str, value: object) -> str:
    """A text as one line for people; a title may hold several lines."""
    text = clean_text(field, value)
    return "".join(each if each.isprintable() else " " for each in text)


def text(field: str, value: object) -> str:
    return clean_text(field, value, limit=LONGEST_TEXT)


def flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"must be true or false, not {type(value).__name__}")
    return value


def seconds(field: str, value: object) -> float:
    number = _number(field, value)
    positive_microseconds(field, number)
    return number


def money(field: str, value: object) -> float:
    number = _number(field, value)
    if not 0 <= number <= LARGEST_NUMBER:
        raise InvalidInput(field, "is no amount of money")
    return number


def json_value(field: str, value: object) -> Any:  # noqa: ANN401 - JSON is any value
    encode_json(field, value, limit=MOST_JSON)
    return value


def mapping(field: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(field, f"must be an object, not {type(value).__name__}")
    return value


def json_object(field: str, value: object) -> dict[str, Any]:
    return dict(json_value(field, mapping(field, value)))


def optional(check: FieldCheck) -> FieldCheck:
    return lambda field, value: None if value is None else check(field, value)


def list_of(check: FieldCheck) -> FieldCheck:
    def check_each(field: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > MOST_PARTS:
            raise InvalidInput(field, f"must be a list of at most {MOST_PARTS}")
        return tuple([check(field, each) for each in value])

    return check_each


def mapping_of(check_name: FieldCheck, check: FieldCheck) -> FieldCheck:
    def check_each(field: str, value: object) -> dict[str, Any]:
        given = mapping(field, value)
        return {check_name(field, key): check(f"{field}.{key}", given[key]) for key in given}

    return check_each


def variable(field: str, value: object) -> str:
    return _matching(_VARIABLE, "name of a variable", field, value)


def header(field: str, value: object) -> str:
    return _matching(_HEADER, "name of a header", field, value)


def trace_id(field: str, value: object) -> str:
    return clean_trace_id(field, value)


def method(field: str, value: object) -> str:
    if value not in METHODS:
        raise InvalidInput(field, f"must be one of {', '.join(METHODS)}")
    return str(value)


def strategy(field: str, value: object) -> str:
    if value not in STRATEGIES:
        raise InvalidInput(field, f"must be one of {', '.join(STRATEGIES)}")
    return str(value)


def access(field: str, value: object) -> str:
    if value not in {"edit", "read"}:
        raise InvalidInput(field, "must be edit or read")
    return str(value)


def command(field: str, value: object) -> tuple[str, ...]:
    words: tuple[str, ...] = list_of(text)(field, value)
    if not words:
        raise InvalidInput(field, "is empty")
    return words


def template_pieces(field: str, value: object) -> tuple[str, ...]:
    """The pieces of a template: texts, and between each two of them the name of a value."""
    found: tuple[str, ...] = list_of(text)(field, value)
    for each in found[1::2]:
        if each != "prompt" and each.partition(".")[0] not in {"env", "secret"}:
            raise InvalidInput(field, "names what no worker can fill in")
    return found


def token(field: str, value: object, attempt: int) -> str:
    """The token of an attempt, which begins with the attempt's number."""
    given = clean_text(field, value, limit=MAX_TEXT)
    found = _TOKEN.fullmatch(given)
    if found is None or int(found[1]) != attempt:
        raise InvalidInput(field, "is not that of the attempt")
    return given


def read_fields(fields: Mapping[str, FieldCheck], path: str, given: object) -> dict[str, Any]:
    """The known fields of an object, each one checked; a missing field counts as null."""
    said = mapping(path, given)
    return {field: check(f"{path}.{field}", said.get(field)) for field, check in fields.items()}


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, f"must be a number, not {type(value).__name__}")
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise InvalidInput(field, "is too large a number")
    return value


def _matching(form: re.Pattern[str], what: str, field: str, value: object) -> str:
    given = clean_text(field, value, limit=MAX_TEXT)
    if form.fullmatch(given) is None:
        raise InvalidInput(field, f"{given[:40]!r} is no {what}")
    return given


@dataclass(frozen=True, kw_only=True)
class Prefetch:
    """The data that a step may read from its store, sent along with its assignment."""

    effects: Mapping[str, Any]
    needed: Mapping[str, Any]
    secrets: frozenset[str]
    trace_id: str


def pack_assignment(assignment: Assignment, prefetch: Prefetch) -> PackedAssignment:
    task = assignment.task
    return {
        "task": {
            **{name: getattr(task, name) for name in (*_TASK_FIELDS, *_TASK_COUNTS)},
            "created_at": count_microseconds(task.created_at),
        },
        "tags": list(task.tags),
        "attempt": assignment.attempt,
        "token": assignment.token,
        "expires_at": count_microseconds(assignment.expires_at),
        "own": {name: getattr(assignment, name) for name in _ASSIGNMENT_FIELDS},
        "values": {name: getattr(assignment, name) for name in _VALUE_FIELDS},
        "work": None if assignment.work is None else asdict(assignment.work),
        "effects": dict(prefetch.effects),
        "needed": dict(prefetch.needed),
        "secrets": sorted(prefetch.secrets),
        "trace_id": prefetch.trace_id,
    }


def unpack_assignment(packed: object) -> tuple[Assignment, Prefetch]:
    """The assignment and the data of a packed one, each field checked."""
    said = mapping("whole", packed)
    told = read_fields(_PACKED_CHECKS, "whole", said)
    values = read_fields(_VALUE_CHECKS, "values", said["values"])
    task = make_record(
        Task, {**read_fields(_TASK_CHECKS, "task", said["task"]), "tags": told["tags"]}
    )
    assignment = make_record(
        Assignment,
        {
            **read_fields(_ASSIGNMENT_CHECKS, "own", said["own"]),
            **values,
            # A server of an earlier release leaves this field out: an answer is its feedback.
            "own_feedback": json_value(
                "own_feedback", said["values"].get("own_feedback", values["feedback"])
            ),
            "task_id": task.id,
            "attempt": told["attempt"],
            "token": token("token", said["token"], told["attempt"]),
            "expires_at": told["expires_at"],
            "task": task,
            "name": single_line("name", task.step or task.title),
            "epoch": task.epoch,
            "work": None if said["work"] is None else _read_work(said["work"]),
        },
    )
    prefetch = Prefetch(
        effects=told["effects"],
        needed=told["needed"],
        secrets=frozenset(told["secrets"]),
        trace_id=told["trace_id"],
    )
    return assignment, prefetch


def _read_work(said: object) -> StepWork:
    told = read_fields(_WORK_CHECKS, "work", said)
    http = told["http"]
    if http is not None:
        told["http"] = HttpCall(**read_fields(_CALL_CHECKS, "http", http))
    if told["merge"] is not None:
        told["merge"] = Merge(**read_fields(_MERGE_CHECKS, "merge", told["merge"]))
    if told["workspace"] is not None:
        told["workspace"] = Workspace(
            **read_fields(_WORKSPACE_CHECKS, "workspace", told["workspace"])
        )
    if told["use"] is not None:
        told["use"] = AgentUse(**read_fields(_USE_CHECKS, "use", told["use"]))
    return StepWork(**told)


_OPTIONAL_NAME = optional(name)
_OPTIONAL_RUN = optional(run_id)
_OPTIONAL_SECONDS = optional(seconds)
_TASK_CHECKS = {
    **dict.fromkeys(_TASK_COUNTS, whole_number),
    "id": task_id,
    "run_id": _OPTIONAL_RUN,
    "step": _OPTIONAL_NAME,
    "title": text,
    "agent": name,
    "item": optional(whole_number),
    "timeout": _OPTIONAL_SECONDS,
    "payload": json_value,
    "created_at": moment,
}
_ASSIGNMENT_CHECKS = {
    "workflow": _OPTIONAL_NAME,
    "workflow_version": _OPTIONAL_NAME,
    "is_step": flag,
    "step": _OPTIONAL_NAME,
    "run_id": _OPTIONAL_RUN,
    "item_number": optional(whole_number),
    "timeout": _OPTIONAL_SECONDS,
    "usd_per_attempt": optional(money),
}
_VALUE_CHECKS = {
    **dict.fromkeys(("payload", "input", "item", "feedback"), json_value),
    "needs": json_object,
}
_PACKED_CHECKS = {
    "tags": list_of(name),
    "attempt": fence,
    "expires_at": moment,
    "effects": json_object,
    "needed": json_object,
    "secrets": list_of(single_line),
    "trace_id": trace_id,
}
_CALL_CHECKS = {
    "url": text,
    "method": method,
    "headers": mapping_of(header, text),
    "body": json_value,
}
_MERGE_CHECKS: dict[str, FieldCheck] = {"into": optional(text), "strategy": strategy}
_WORKSPACE_CHECKS: dict[str, FieldCheck] = {
    "git": text,
    "start": optional(text),
    "branch": optional(text),
    "setup": list_of(text),
    "copy": list_of(text),
    "keep": _OPTIONAL_SECONDS,
    "filters": flag,
    "max_file": whole_number,
}
_USE_CHECKS: dict[str, FieldCheck] = {
    "preset": name,
    "access": name,
    "model": optional(single_line),
    "turns": optional(whole_number),
    "usd": optional(money),
    "account": _OPTIONAL_NAME,
    "schema": flag,
    "mcp": optional(text),
    "flags": list_of(text),
}
_WORK_CHECKS: dict[str, FieldCheck] = {
    "prompt": optional(text),
    "command": optional(command),
    "use": optional(mapping),
    "http": optional(mapping),
    "workflow": _OPTIONAL_NAME,
    "version": _OPTIONAL_NAME,
    "env": mapping_of(variable, text),
    "cwd": optional(text),
    "outputs": optional(json_object),
    "idle_timeout": _OPTIONAL_SECONDS,
    "input": json_value,
    "access": optional(access),
    "merge": optional(mapping),
    "landing": lambda field, value: value is not None and flag(field, value),
    "workspace": optional(mapping),
    "line": _OPTIONAL_NAME,
    "later": mapping_of(single_line, template_pieces),
}
