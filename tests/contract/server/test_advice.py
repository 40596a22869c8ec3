"""Whoever is refused is told what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.server.local_server import Served

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HOST = {"Host": "build.example"}
ORIGIN = {"Origin": "https://build.example"}
NAMED = {"worker": "w", "agents": ["writer"]}
# Who asks, for what, with what; and what they are told to do.
CASES: dict[str, tuple[str | None, str, str, dict[str, Any], str]] = {
    "a role": ("viewer", "POST", "/api/v1/tasks", {}, "holdfast token create NAME --role operator"),
    "a host": ("admin", "GET", "/api/v1/runs", {"headers": HOST}, "--allow-host build.example"),
    "an origin": (
        *("admin", "GET", "/api/v1/runs"),
        {"headers": ORIGIN},
        "--allow-origin https://build.example",
    ),
    "agents": ("scoped", "POST", "/api/v1/claims", {"json": NAMED}, "it is for builder"),
    "a role of tools": ("worker", "POST", "/mcp?as=operator", {"json": CALL}, "?as=worker"),
    "no token for tools": (None, "POST", "/mcp", {"json": CALL}, "headers of this server"),
    "no token": (None, "GET", "/api/v1/runs", {}, "`holdfast token` tells yours"),
    "a token that is none": (
        *(None, "GET", "/api/v1/runs"),
        {"headers": {"Authorization": "Bearer hf_nobodys"}},
        "unknown, revoked or expired; at the server, `holdfast token create NAME --role worker`",
    ),
    "a filter": (
        *("admin", "GET", "/api/v1/runs?stauts=running"),
        {},
        "stauts: is no parameter of this; did you mean 'status'?",
    ),
    "a filter that is like nothing": (
        *("admin", "GET", "/api/v1/runs?Str=1"),
        {},
        "Str: is no parameter of this; there are after, agent, error, ",
    ),
    "a filter that is said twice": (
        *("admin", "GET", "/api/v1/tasks?status=done&agent=a&status=failed"),
        {},
        "status: is said more than once; ask once for each",
    ),
    "a parameter of a short way": (
        *("admin", "POST", "/api/v1/claims?worker=w"),
        {"json": {"worker": "w"}},
        "worker: is no parameter of this",
    ),
    "a method": ("admin", "DELETE", "/api/v1/runs", {}, "takes GET, POST; /openapi.json"),
    "a path": ("admin", "GET", "/api/v1/nothing", {}, "/openapi.json tells which there are"),
}


@pytest.fixture
def scoped(quick_server: Served) -> Served:
    asked = {"name": "scoped", "role": "worker", "agents": ["builder"]}
    quick_server.tokens["scoped"] = quick_server().post("/tokens", json=asked).json()["token"]
    return quick_server


def test_each_refusal_says_what_to_do_next(scoped: Served) -> None:
    for name, (who, method, path, more, told) in CASES.items():
        own = {} if who is None else {"Authorization": f"Bearer {scoped.tokens[who]}"}
        sent: dict[str, Any] = {**more, "headers": {**own, **more.get("headers", {})}}
        answer = scoped.stranger.request(method, path, **sent)
        assert answer.status_code in {401, 403, 404, 405, 422}, name
        assert told in answer.json()["detail"], (name, answer.text)
