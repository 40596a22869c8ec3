"""One example of everything that is sent and answered, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

_AT = "2026-03-02T09:00:00.000000Z"
_LATER = "2026-03-02T09:00:30.000000Z"
_TASK_ID = "t_01m7grt6s94kyx9tyr2q"
_RUN_ID = "r_01m7grt6wxarbfxftyf2"
_TOKEN = "1.f36cbad2299f61fe24fd7fd6beaa3d74"  # noqa: S105 - of nothing
_VERSION = "1eb8a24047732df7ecc81d3ee33700ff"

_AWAITED = {"target": _RUN_ID, "name": "courier.arrived"}

_TASK: dict[str, Any] = {
    "id": _TASK_ID,
    "kind": "work",
    "title": "Write the letter",
    "agent": "writer",
    "status": "queued",
    "state": "ready",
    "planning_phase": "none",
    "blocked_by": [],
    "holds": [],
    "skipped": False,
    "attempt": 0,
    "failures": 0,
    "max_attempts": 3,
    "lost": 0,
    "max_lost": 5,
    "round": 0,
    "generation": 1,
    "priority": 0,
    "position": 0,
    "tags": ["gpu"],
    "key": "letter-1",
    "payload": {"prompt": "Write three lines"},
    "version": 1,
    "created_at": _AT,
}
_LEASED = {"status": "running", "state": "running", "attempt": 1, "version": 2}
_RUN: dict[str, Any] = {
    "id": _RUN_ID,
    "workflow": "letters",
    "workflow_version": _VERSION,
    "key": "monday",
    "status": "running",
    "holds": [],
    "input": {"to": "Ada"},
    "progress": {"done": 0, "total": 2},
    "version": 1,
    "generation": 1,
    "created_at": _AT,
}
_EVENT: dict[str, Any] = {
    "seq": 2,
    "type": "task.running",
    "task_id": _TASK_ID,
    "version": 2,
    "generation": 1,
    "attempt": 1,
    "actor": "python-1",
    "at": _AT,
    "from": "queued",
    "to": "running",
}
_ASSIGNMENT: dict[str, Any] = {
    "task": {**_TASK, **_LEASED},
    "attempt": 1,
    "token": _TOKEN,
    "lease_expires_at": _LATER,
}
_HELD = {"token": _TOKEN}
_REMEMBERED = {"ok": True, "repeated": False, "name": "mail", "value": {"id": 7}}
_CLAUSES = [{"name": "needs", "ok": True, "detail": ""}]

# By the names of the shapes, as the document has them.
SENT: dict[str, Any] = {
    "NewScheduleBody": {"name": "nightly", "cron": "30 2 * * *", "workflow": "letters"},
    "StartRunBody": {"workflow": "letters", "input": {"to": "Ada"}, "key": "monday"},
    "ResumeRunBody": {"add_usd": 2.5, "add_attempts": 5},
    "RetryRunBody": {"step": "write"},
    "SignalBody": {"name": "courier.arrived", "payload": {"at": "noon"}, "key": "parcel-7"},
    "NewTaskBody": {
        "title": "Write the letter",
        "agent": "writer",
        "payload": {"prompt": "Write three lines"},
        "needs": [],
        "scheduled_for": "10m",
        "tags": ["gpu"],
        "key": "letter-1",
        "timeout": "30m",
    },
    "NewTasksBody": {"tasks": [{"title": "Write the letter"}, {"title": "Post it"}]},
    "EditTaskBody": {"title": "Write a longer letter", "priority": 5},
    "BlockTaskBody": {"needs": [_TASK_ID]},
    "UnblockTaskBody": {"needs": [_TASK_ID]},
    "ApproveBody": {"note": "Looks good"},
    "RejectBody": {"reason": "Not before Friday"},
    "AnswerBody": {"answer": "Use the new API"},
    "FollowUpBody": {"message": "Also update the docs"},
    "FinalizePlanBody": {"graph": {_TASK_ID: []}},
    "ReorderPlanBody": {"order": [_TASK_ID]},
    "TaskPositionBody": {"id": _TASK_ID, "position": 0},
    "ReorderByPositionBody": {"tasks": [{"id": _TASK_ID, "position": 0}]},
    "ClaimBody": {
        "worker": "python-1",
        "agents": ["writer"],
        "max": 4,
        "wait_seconds": 30,
        "lease_seconds": 60,
        "request_id": "1",
    },
    "RenewLeaseBody": {"task_id": _TASK_ID, "token": _TOKEN, "progress": "half"},
    "TaskResultBody": {"task_id": _TASK_ID, "token": _TOKEN, "output": {"lines": 3}},
    "RenewBody": {"worker": "python-1", "leases": [{"task_id": _TASK_ID, "token": _TOKEN}]},
    "LeaveBody": {"worker": "python-1", "process": "start-7"},
    "AttemptBody": _HELD,
    "CompleteBody": {**_HELD, "output": {"lines": 3}, "usage": {"usd": 0.08}},
    "CompleteManyBody": {
        "results": [{"task_id": _TASK_ID, "token": _TOKEN, "output": {"lines": 3}}]
    },
    "FailBody": {**_HELD, "error": "the printer is on fire", "retryable": True},
    "ReleaseBody": {**_HELD, "until": "10m"},
    "AskBody": {**_HELD, "question": "Which colour?"},
    "NoteStopBody": {**_HELD, "ended": 2, "left": 0},
    "LogBody": {**_HELD, "chunk": "on it\n"},
    "EffectBody": {**_HELD, "name": "mail", "value": {"id": 7}},
    "ArtifactBody": {**_HELD, "name": "letter.txt", "content": "Dear Ada", "encoding": "text"},
    "SpawnChildrenBody": {**_HELD, "name": "parts", "tasks": [{"title": "The envelope"}]},
    "EffectNoteBody": {"name": "asked", "value": {"id": 7}},
    "ParkedMessageBody": {"handler": "accounting/note_end", "message_id": f"{_TASK_ID}.3"},
    "NewTokenBody": {"name": "ci", "role": "worker", "agents": ["builder"], "expires": "30d"},
}
ANSWERED: dict[str, Any] = {
    "Problem": {
        "type": "urn:holdfast:problem:stale_token",
        "title": "Conflict",
        "status": 409,
        "code": "stale_token",
        "detail": "attempt 2 has the task by now",
    },
    "Task": _TASK,
    "Run": _RUN,
    "Tasks": {"items": [_TASK], "next": _TASK_ID},
    "Runs": {"items": [_RUN], "next": _RUN_ID},
    "Events": {"items": [_EVENT], "next": "2"},
    "Page": {"items": [{"name": "python-1", "agents": ["writer"], "seen_at": _AT}]},
    "Made": _TASK,
    "Changed": {"ok": True, "repeated": False, "task": _TASK},
    "Awaited": _AWAITED,
    "Signalled": {
        "ok": True,
        "repeated": False,
        "run": _RUN,
        "waited_for": True,
        "awaited": [_AWAITED],
    },
    "Schedule": {"name": "nightly", "cron": "30 2 * * *", "zone": "UTC", "workflow": "letters"},
    "Workflow": {"name": "letters", "version": _VERSION, "created": True},
    "Assignment": _ASSIGNMENT,
    "Assignments": {"assignments": [_ASSIGNMENT]},
    "Event": _EVENT,
    "Leases": {"leases": [{"task_id": _TASK_ID, "ok": False, "reason": "stale_token"}]},
    "Results": {"results": [{"task_id": _TASK_ID, "ok": True, "repeated": False}]},
    "Token": {"name": "ci", "role": "worker", "agents": ["builder"], "created_at": _AT},
    "Link": {"path": "/enter?code=8J1c", "expires_at": _LATER},
    "Session": {"name": "ada", "role": "operator", "csrf": "5f1d", "expires_at": _LATER},
    "Why": {
        "id": _TASK_ID,
        "status": "queued",
        "state": "ready",
        "summary": "Write the letter is ready",
        "claimable": True,
        "clauses": _CLAUSES,
        "fixes": ["holdfast worker --agent writer"],
    },
    "LogText": {"attempt": 1, "text": "on it\n", "next": 6},
    "Written": {"ok": True, "bytes": 6},
    "Effects": {"effects": {"mail": {"id": 7}}},
    "Remembered": _REMEMBERED,
    "Spawned": {
        "ok": True,
        "repeated": False,
        "name": "children",
        "value": [_TASK_ID],
        "items": [_TASK],
    },
    "Recalled": _REMEMBERED,
    "Kept": {"task_id": _TASK_ID, "ok": True},
    "File": {"ok": True, "repeated": False, "name": "letter.txt", "bytes": 8, "digest": "8f43"},
    "Statistics": {
        "agents": {"writer": {"ready": 3, "running": 1}},
        "runs": {"running": 2},
        "workers": 1,
        "conflicts": 0,
    },
    "Alive": {"ok": True},
    "Document": {"openapi": "3.1.0", "paths": {}},
    "Reply": {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}},
}


def problem_example(status: int, code: str, title: str, detail: str) -> dict[str, Any]:
    told = {"type": f"urn:holdfast:problem:{code}", "title": title, "status": status}
    return {**told, "code": code, "detail": detail}


def illustrate(schemas: dict[str, Any]) -> None:
    """Add to the shapes of a document what one of each looks like."""
    for name, example in {**SENT, **ANSWERED}.items():
        if name in schemas:
            schemas[name]["examples"] = [example]
