"""What travels to a worker elsewhere: an assignment, with all that its executors ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.model.fill import fill
from holdfast.model.task import Assignment, Task
from holdfast.model.work import HttpCall, Work

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


def unpack(packed: Packed) -> tuple[Assignment, Around]:
    """What was packed; of its task, what steps look at."""
    task = fill(Task, {**packed["task"], "tags": tuple(packed["tags"])})
    assignment = fill(
        Assignment,
        {
            **packed["own"],
            # A server of an earlier release does not say it, and lets an answer stand for it.
            "own_feedback": packed["values"]["feedback"],
            **packed["values"],
            "task_id": task.id,
            "attempt": packed["attempt"],
            "token": packed["token"],
            "expires_at": packed["expires_at"],
            "task": task,
            "name": task.step or task.title,
            "epoch": task.epoch,
            "work": None if packed["work"] is None else _work(packed["work"]),
        },
    )
    around = Around(
        effects=packed["effects"],
        needed=packed["needed"],
        secrets=frozenset(packed["secrets"]),
        trace_id=packed["trace_id"],
    )
    return assignment, around


def _work(told: Mapping[str, Any]) -> Work:
    http, command = told["http"], told["command"]
    fields = {
        **told,
        "command": None if command is None else tuple(command),
        "http": None if http is None else HttpCall(**http),
        "later": {place: tuple(pieces) for place, pieces in told["later"].items()},
    }
    return Work(**fields)
