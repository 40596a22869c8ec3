"""The gate: every route that the application has, tried by everybody who may not take it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from holdfast.engine.engine import engine_of
from holdfast.server import gate
from holdfast.server.auth.recognition import SAFE_METHODS
from holdfast.server.gate import GateRules
from holdfast.server.route_table import ALL_ROLES, GuardedRoute
from holdfast.service.admin.tokens import Tokens
from tests.contract.server.browser import follow
from tests.contract.server.local_server import ROLES, Served, served

# What is answered without a token, and what it says then: no code is no way in.
OPEN = {
    ("GET", "/healthz"): "200 None",
    ("GET", "/enter"): "422 invalid_input",
    ("POST", "/enter"): "401 unauthorized",
}
UNKNOWN = {
    "task_id": "t_" + "0" * 20,
    "run_id": "r_" + "0" * 20,
    "bulk_id": "b_" + "0" * 20,
    "name": "nobody",
}


def _routes(server: Served) -> list[tuple[str, str, GuardedRoute]]:
    """Method, path and route of all there is, as the application itself has it."""
    routes = [each for each in server.application.app.routes if isinstance(each, GuardedRoute)]
    assert len(routes) == len(server.application.app.routes), "one is behind no guard"
    return [
        (method, route.path.format(**UNKNOWN), route)
        for route in routes
        for method in sorted(route.methods or ())
    ]


def _ask(server: Served, method: str, path: str, token: str | None, **headers: str) -> str:
    own = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = server.stranger.request(method, path, headers={**own, **headers})
    told: dict[str, Any] = {} if answer.status_code < 400 else answer.json()
    assert told == {} or answer.headers["content-type"] == "application/problem+json"
    return f"{answer.status_code} {told.get('code')}"


@pytest.fixture
def patient_server(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """One that lets anybody fail as often as they like."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(sqlite_url, tmp_path / "home", rules=GateRules(failures=None)) as made:
        yield made


def test_every_route_refuses_whoever_may_not_take_it(patient_server: Served) -> None:
    server = patient_server
    tokens = Tokens(engine_of(server.hf))
    expired = tokens.create("short", role="admin", expires=0.000_001)["token"]
    revoked = tokens.create("gone", role="admin")["token"]
    tokens.revoke("gone")
    routes = _routes(server)
    assert len(routes) > 55
    assert {(method, path) for method, path, _ in routes if path in gate.OPEN_PATHS} == {*OPEN}
    for method, path, route in routes:
        if path in gate.OPEN_PATHS:
            assert _ask(server, method, path, None) == OPEN[method, path]
            continue
        for bad in (None, "wrong", expired, revoked, server.tokens["admin"][:-1]):
            assert _ask(server, method, path, bad) == "401 unauthorized", (method, path)
        for role in set(ROLES) - route.roles:
            told = _ask(server, method, path, server.tokens[role])
            assert told == "403 forbidden", (method, path, role)
    for method, path, _ in routes:
        good = server.tokens["admin"]
        for host in ("evil.example", "evil.example:80", "localhost.evil.example", "", "[::1]x"):
            told = _ask(server, method, path, good, Host=host)
            assert told == "403 foreign_host", (method, path, host)
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
            told = _ask(server, method, path, good, Origin=origin)
            assert told == "403 foreign_origin", (method, path, origin)


def test_no_route_takes_a_change_from_a_cookie_alone(patient_server: Served) -> None:
    server = patient_server
    with follow(server, "admin") as browser:
        cookie = "; ".join(f"{key}={value}" for key, value in browser.cookies.items())
    for method, path, _ in _routes(server):
        if method not in SAFE_METHODS and path not in gate.OPEN_PATHS:
            told = _ask(server, method, path, None, Cookie=cookie)
            assert told == "403 csrf", (method, path)
    for bad in (cookie[:-1], "holdfast=", "x" * 9_000):
        assert _ask(server, "GET", "/api/v1/runs", None, Cookie=bad) == "401 unauthorized"


def test_a_route_that_names_nobody_lets_nobody_in(quick_server: Served) -> None:
    server = quick_server

    async def forgotten() -> None: ...

    server.application.app.router.add_api_route("/forgotten", forgotten)
    assert _ask(server, "GET", "/forgotten", server.tokens["admin"]) == "403 forbidden"


def test_a_missing_route_is_not_told_to_a_caller_without_a_token(quick_server: Served) -> None:
    server = quick_server
    assert _ask(server, "GET", "/nothing", None) == "401 unauthorized"
    assert _ask(server, "GET", "/nothing", server.tokens["viewer"]) == "404 not_found"
    assert _ask(server, "PUT", "/api/v1/runs", server.tokens["viewer"]) == "405 method_not_allowed"


def test_pages_of_its_own_may_ask_and_are_kept_careful(quick_server: Served) -> None:
    server = quick_server
    own = server("viewer").get("/runs", headers={"Origin": server.url})
    assert own.status_code == 200
    assert "default-src 'none'" in own.headers["content-security-policy"]
    assert own.headers["x-content-type-options"] == "nosniff"
    assert own.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in own.headers
    assert "server" not in own.headers


def test_a_worker_token_may_be_for_some_agents_alone(server: Served) -> None:
    made = server().post("/tokens", json={"name": "b", "role": "worker", "agents": ["builder"]})
    task = server.add(agent="builder")
    server.add(agent="default")
    with server.client(made.json()["token"]) as scoped:
        outside = scoped.post("/claims", json={"worker": "w", "agents": ["default"]})
        assert (outside.status_code, outside.json()["code"]) == (403, "forbidden")
        got = scoped.post("/claims", json={"worker": "w", "max": 9}).json()["assignments"]
        assert [each["task"]["id"] for each in got] == [task["id"]]
        assert server().delete("/tokens/b").status_code == 200
        over = scoped.post("/claims", json={"worker": "w"})
    assert over.status_code == 401


def test_every_change_carries_its_actor_and_is_in_the_audit(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    caplog.set_level(logging.INFO, "holdfast.audit")
    task = server.add()
    server("admin").post(f"/tasks/{task['id']}/cancel")
    assert [each.actor for each in server.hf.tasks.events(task["id"])] == ["operator", "admin"]
    said = [each.getMessage() for each in caplog.records if each.name == "holdfast.audit"]
    assert said == [
        f"operator (operator) POST /api/v1/tasks 201 {task['id']}",
        f"admin (admin) POST /api/v1/tasks/{task['id']}/cancel 200",
    ]


UNACCEPTABLE = {
    b"{": "400 invalid_json",
    b"\xff": "400 invalid_json",
    b'{"title": NaN}': "400 invalid_json",
    b'{"title": 1e999}': "400 invalid_json",
    b"[" * 100_000: "400 invalid_json",
    b'{"title": "x", "payload": ' + b"[" * 200 + b"]" * 200 + b"}": "422 invalid_input",
    b'{"title": "\\ud800"}': "422 invalid_input",
    b'{"title": "\\u0000"}': "422 invalid_input",
    b'{"\\ud800": 1}': "422 invalid_input",
    b'{"title": "x", "priority": 1' + b"0" * 30 + b"}": "422 invalid_input",
    b'{"title": "x", "needs": [""]}': "422 invalid_input",
    b'{"title": "x", "unknown": 1}': "422 invalid_input",
    b'{"title": "x", "timeout": "soon"}': "422 invalid_input",
    b"x" * (16 * 1024 * 1024 + 1): "413 too_large",
}


def test_a_body_that_cannot_be_accepted_is_refused_at_the_edge(server: Served) -> None:
    for body, told in UNACCEPTABLE.items():
        answer = server("operator").post(
            "/tasks", content=body, headers={"Content-Type": "application/json"}
        )
        assert f"{answer.status_code} {answer.json()['code']}" == told, body[:60]
    assert server.hf.tasks.list() == []


def test_texts_that_no_store_can_keep_are_refused_wherever_they_stand(server: Served) -> None:
    places = [
        *("/workflows/%00", "/workflows/x?version=%00", "/runs?workflow=%00", "/runs?status=%00"),
        *("/runs?after=%00", "/tasks?agent=%00", "/tasks?run=%00", "/tasks?parent=%00"),
        *("/schedules?after=%00", "/events?after=%00", "/tasks/%00/why", "/runs/%00/events"),
        *(f"/tasks/{UNKNOWN['task_id']}/logs?start=1{'0' * 40}", "/tasks?limit=1" + "0" * 40),
    ]
    for place in places:
        answer = server().get(place)
        assert answer.status_code in {404, 422}, (place, answer.text)
    for text in ("\x00", "\ud800", "x" * 100_000):
        bodies: dict[str, dict[str, Any]] = {
            "/claims": {"worker": text},
            "/claims ": {"worker": "w", "request_id": text},
            "/claims  ": {"worker": "w", "passing": [text]},
            "/runs": {"workflow": text},
            "/tokens": {"name": text, "role": "viewer"},
            f"/claims/{UNKNOWN['task_id']}/complete": {"token": text, "output": {text: text}},
            f"/claims/{UNKNOWN['task_id']}/effects": {"token": "x", "name": text},
            f"/runs/{UNKNOWN['run_id']}/signals": {"name": text},
        }
        for place, body in bodies.items():
            sent = json.dumps(body).encode()
            answer = server().post(
                place.strip(), content=sent, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code in {200, 404, 422}, (place, answer.text)


def test_a_body_without_a_length_is_cut_off_where_it_grows_too_long(quick_server: Served) -> None:
    server = quick_server

    def endless() -> Any:  # noqa: ANN401 - bytes, one after another
        for _ in range(40):
            yield b" " * 1_000_000

    answer = server("operator").post(
        "/tasks", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_every_route_says_in_the_document_who_it_is_and_what_it_refuses(
    quick_server: Served,
) -> None:
    server = quick_server
    told = server().get(f"{server.url}/openapi.json").json()
    described = {
        (method.upper(), path) for path, verbs in told["paths"].items() for method in verbs
    }
    routes = [each for each in server.application.app.routes if isinstance(each, APIRoute)]
    assert described == {(method, each.path) for each in routes for method in each.methods or ()}
    for path, verbs in told["paths"].items():
        for verb in verbs.values():
            assert verb.get("security") == [] if path in gate.OPEN_PATHS else verb["x-roles"]
    assert set(ALL_ROLES) == set(ROLES)
