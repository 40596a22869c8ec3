"""Every command has its calls over HTTP, or the page says why it is for the machine itself."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.cli.app.command_registry import MODULES
from holdfast.server.application import TABLES

PAGE = Path(__file__).parents[4] / "docs/how-to/http.md"
# A call for each command that is not for the machine itself.
CALLS = {
    "run": "POST /runs",
    "runs": "GET /runs",
    "tasks": "GET /tasks",
    "show": "GET /runs/{run_id}",
    "why": "GET /tasks/{task_id}/why",
    "events": "GET /events",
    "logs": "GET /tasks/{task_id}/logs",
    **{verb: f"POST /runs/{{run_id}}/{verb}" for verb in ("cancel", "retry", "pause", "resume")},
    **{
        verb: f"POST /tasks/{{task_id}}/{verb}"
        for verb in ("approve", "reject", "answer", "continue")
    },
    "signal": "POST /runs/{run_id}/signals",
    "task": "POST /tasks",
    "plan": "POST /tasks/{task_id}/plan/children",
    "workers": "GET /workers",
    "work": "POST /claims",
    "guard": "POST /claims/{task_id}/guard",
    "token": "POST /tokens",
    "workflow": "POST /workflows",
    "schedule": "POST /schedules",
    "bus": "GET /bus/parked",
    "activity": "GET /activity",
    "costs": "GET /costs",
    "artifacts": "GET /tasks/{task_id}/artifacts",
    "diff": "GET /runs/{run_id}/diff",
}


def test_every_command_has_a_call_or_a_reason() -> None:
    served = {f"{entry.method} {entry.path}" for table in TABLES for entry in table.entries}
    there = {call.replace(" ", " /api/v1") for call in CALLS.values()}
    assert there - served == set()
    (told,) = re.findall(r"on the machine itself\n.*?\n\n(\|.*?)\n\n", PAGE.read_text(), re.DOTALL)
    rows = re.findall(r"^\| (`.*?) \|", told, re.MULTILINE)
    local = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    commands = {name for names in MODULES.values() for name in names}
    assert commands - local == CALLS.keys() - local
