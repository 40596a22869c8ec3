"""What is refused over HTTP is told by the field that it was sent in."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.server.local_server import Served

JSON = {"Content-Type": "application/json"}
NUL = "a\x00b"
HALF = "\ud800"
FAR = "9999d"
TASK = {"title": "t"}
# Where it is sent, with what beside it, and a value of each field that the engine refuses.
WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("/claims/{held}/fail", {}, {"limit_until": FAR, "error": HALF}),
    ("/claims/{held}/release", {}, {"until": "soon", "wait_for": NUL}),
    ("/claims/{held}/release", {"until": "1h"}, {"note.name": NUL, "note.value": HALF}),
    ("/claims/{held}/ask", {"question": "q"}, {"note.name": NUL}),
    ("/claims/{held}/ask", {}, {"question": HALF}),
    ("/claims/{held}/complete", {}, {"output": HALF}),
    ("/claims/{held}/effects", {}, {"name": NUL}),
    ("/claims/{held}/effects", {"name": "n"}, {"value": HALF}),
    ("/claims/{held}/artifacts", {"content": ""}, {"name": "../a"}),
    ("/claims/{held}/artifacts", {"name": "a", "encoding": "base64"}, {"content": "?"}),
    ("/claims/{held}/children", {"tasks": [TASK]}, {"name": NUL}),
    (
        "/claims",
        {"worker": "w"},
        {
            "agents": [NUL],
            "tags": [NUL],
            "lease_seconds": 0,
            "request_id": NUL,
            "task_id": "t_?",
            "passing": ["t_?"],
        },
    ),
    ("/claims", {}, {"worker": NUL}),
    ("/claims/renew", {"leases": []}, {"lease_seconds": 0}),
    (
        "/tasks",
        {"title": "t"},
        {
            "step": NUL,
            "agent": NUL,
            "payload": HALF,
            "needs": ["t_?"],
            "parent": "t_?",
            "scheduled_for": "soon",
            "priority": 2**70,
            "position": -(2**70),
            "tags": [NUL],
            "key": NUL,
            "max_attempts": 0,
            "max_lost": -1,
            "timeout": "soon",
        },
    ),
    ("/tasks/{idle}", {}, {"scheduled_for": "soon", "timeout": "soon", "max_attempts": 0}),
    ("/tasks/{idle}", {}, {"title": "", "agent": NUL, "tags": [NUL], "priority": 2**70}),
    ("/tasks/{idle}/approve", {}, {"note": HALF}),
    ("/tasks/{idle}/reject", {}, {"reason": HALF}),
    ("/tasks/{idle}/answer", {}, {"answer": HALF}),
    ("/tasks/{idle}/continue", {}, {"message": HALF}),
    ("/tasks/{idle}/plan/children", {}, {"order": ["t_?"]}),
    (
        "/runs",
        {"workflow": "w"},
        {"key": NUL, "priority": 2**70, "deadline": "soon"},
    ),
    ("/runs", {}, {"workflow": NUL}),
    ("/runs/{run}/resume", {}, {"add_usd": -1, "add_attempts": 0}),
    ("/runs/{run}/retry", {}, {"step": NUL}),
    ("/runs/{run}/signals", {"name": "n"}, {"payload": HALF, "key": NUL}),
    ("/runs/{run}/signals", {}, {"name": NUL}),
    (
        "/schedules",
        {"name": "n", "cron": "0 9 * * *", "task": TASK},
        {"cron": "never", "zone": "Mars", "missed": "maybe", "name": NUL},
    ),
    ("/tokens", {"name": "n", "role": "worker"}, {"expires": "soon", "agents": [NUL]}),
    ("/tokens", {"name": "n"}, {"role": "king"}),
    ("/tokens", {"role": "worker"}, {"name": NUL}),
]


def test_a_refused_value_is_told_by_the_name_of_its_field(quick_server: Served) -> None:
    server = quick_server
    text = "name: w\nsteps: [{id: a, agent: x}]\nagents: {x: {external: true}}"
    yaml = {"Content-Type": "application/yaml"}
    server().post("/workflows", content=text, headers=yaml).raise_for_status()
    run = server().post("/runs", json={"workflow": "w"}).json()["id"]
    task = server.add("held")["id"]
    token = server.claim(task_id=task)[0]["token"]
    idle = server().post("/tasks", json={"title": "idle", "enqueue": False}).json()["id"]
    told = {}
    for path, beside, fields in WRONG:
        place = path.format(held=task, idle=idle, run=run)
        own = {"token": token} if "{held}" in path else {}
        method = "PATCH" if path == "/tasks/{idle}" or "order" in fields else "POST"
        for field, value in fields.items():
            name, _, inner = field.partition(".")
            sent = {**own, **beside, name: {"name": "n", inner: value} if inner else value}
            # In ASCII, for JSON can say what UTF-8 cannot.
            answer = server().request(method, place, content=json.dumps(sent), headers=JSON)
            told[path, field] = (answer.status_code, answer.json().get("field"))
    assert told == {(path, field): (422, field) for path, _, fields in WRONG for field in fields}
