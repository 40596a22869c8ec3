"""What travels to a worker elsewhere: an assignment, with all that its executors ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.model.frozen_record import fill
from holdfast.model.task import Assignment, Task
from holdfast.model.workflow.declarations import HttpCall, Work
from holdfast.worker.remote import wire_checks as checks

Packed = dict[str, Any]

# Why one renewal among others is not ok though the engine has refused nothing: it cannot be
# accepted as it stands, or it is not written yet, and may be asked for again.
INVALID, AWAY = "invalid_input", "store_unavailable"

_TASK = ("id", "run_id", "step", "title", "agent", "item", "timeout", "payload", "created_at")
_COUNTS = ("attempt", "failures", "lost", "epoch", "round")
_OF_STEP = ("workflow", "workflow_version", "is_step", "step", "run_id", "item_number")
_OWN = (*_OF_STEP, "timeout", "usd_per_attempt")
_VALUES = ("payload", "input", "item", "needs", "feedback", "own_feedback")


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a step may ask its store for before it begins."""

    effects: Mapping[str, Any]
    needed: Mapping[str, Any]
    secrets: frozenset[str]
    trace_id: str


def pack(assignment: Assignment, around: Around) -> Packed:
    task = assignment.task
    return {
        "task": {name: getattr(task, name) for name in (*_TASK, *_COUNTS)},
        "tags": list(task.tags),
        "attempt": assignment.attempt,
        "token": assignment.token,
        "expires_at": assignment.expires_at,
        "own": {name: getattr(assignment, name) for name in _OWN},
        "values": {name: getattr(assignment, name) for name in _VALUES},
        "work": None if assignment.work is None else asdict(assignment.work),
        "effects": dict(around.effects),
        "needed": dict(around.needed),
        "secrets": sorted(around.secrets),
        "trace_id": around.trace_id,
    }


def unpack(packed: object) -> tuple[Assignment, Around]:
    """What was packed, each field checked; of its task, what steps look at."""
    said = checks.mapping("whole", packed)
    told = checks.read(_WHOLE, "whole", said)
    values = checks.read(_ANY, "values", said["values"])
    task = fill(Task, {**checks.read(_OF_TASK, "task", said["task"]), "tags": told["tags"]})
    assignment = fill(
        Assignment,
        {
            **checks.read(_OF_OWN, "own", said["own"]),
            **values,
            # A server of an earlier release does not say it, and lets an answer stand for it.
            "own_feedback": checks.json_value(
                "own_feedback", said["values"].get("own_feedback", values["feedback"])
            ),
            "task_id": task.id,
            "attempt": told["attempt"],
            "token": checks.token("token", said["token"], told["attempt"]),
            "expires_at": told["expires_at"],
            "task": task,
            "name": checks.line("name", task.step or task.title),
            "epoch": task.epoch,
            "work": None if said["work"] is None else _work(said["work"]),
        },
    )
    around = Around(
        effects=told["effects"],
        needed=told["needed"],
        secrets=frozenset(told["secrets"]),
        trace_id=told["trace_id"],
    )
    return assignment, around


def _work(said: object) -> Work:
    told = checks.read(_OF_WORK, "work", said)
    http = told["http"]
    if http is not None:
        told["http"] = HttpCall(**checks.read(_OF_CALL, "http", http))
    return Work(**told)


_NAME = checks.optional(checks.name)
_RUN = checks.optional(checks.run_id)
_SECONDS = checks.optional(checks.seconds)
_OF_TASK = {
    **dict.fromkeys(_COUNTS, checks.whole),
    "id": checks.task_id,
    "run_id": _RUN,
    "step": _NAME,
    "title": checks.text,
    "agent": checks.name,
    "item": checks.optional(checks.whole),
    "timeout": _SECONDS,
    "payload": checks.json_value,
    "created_at": checks.whole,
}
_OF_OWN = {
    "workflow": _NAME,
    "workflow_version": _NAME,
    "is_step": checks.flag,
    "step": _NAME,
    "run_id": _RUN,
    "item_number": checks.optional(checks.whole),
    "timeout": _SECONDS,
    "usd_per_attempt": checks.optional(checks.money),
}
_ANY = {
    **dict.fromkeys(("payload", "input", "item", "feedback"), checks.json_value),
    "needs": checks.json_object,
}
_WHOLE = {
    "tags": checks.many(checks.name),
    "attempt": checks.fence,
    "expires_at": checks.whole,
    "effects": checks.json_object,
    "needed": checks.json_object,
    "secrets": checks.many(checks.line),
    "trace_id": checks.trace_id,
}
_OF_CALL = {
    "url": checks.text,
    "method": checks.method,
    "headers": checks.named(checks.header, checks.text),
    "body": checks.json_value,
}
_OF_WORK: dict[str, checks.Check] = {
    "prompt": checks.optional(checks.text),
    "command": checks.optional(checks.command),
    "http": checks.optional(checks.mapping),
    "workflow": _NAME,
    "version": _NAME,
    "env": checks.named(checks.variable, checks.text),
    "outputs": checks.optional(checks.json_object),
    "idle_timeout": _SECONDS,
    "input": checks.json_value,
    "later": checks.named(checks.line, checks.pieces),
}
