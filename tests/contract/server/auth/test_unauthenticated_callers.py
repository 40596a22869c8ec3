"""Who has no good token: their tries are counted, and cost neither the store nor the audit much."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.engine.engine import engine_of
from holdfast.model.token import AccessToken
from holdfast.server.auth import audit_throttle, auth_throttle
from holdfast.server.auth.rate_limits import Rate
from holdfast.server.gate import GateRules
from holdfast.service.admin.tokens import Tokens
from tests.contract.server.browser import follow
from tests.contract.server.local_server import Served, served
from tests.contract.server.routes.test_metrics import value
from tests.engines import opened
from tests.race.racers import eventually

SELDOM = Rate(per_second=0.01, burst=3)


@pytest.fixture
def strict_server(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(store_url, tmp_path / "home", rules=GateRules(failures=SELDOM)) as made:
        yield made


def _show(server: Served, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return server.stranger.get("/api/v1/session", headers=headers)


def test_a_flood_of_wrong_tokens_costs_the_store_no_read_each(
    strict_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, looked = strict_server, list[str]()
    monkeypatch.setattr(auth_throttle, "MIN_READ_INTERVAL", 0.0)
    tokens = server.application.server_state.tokens
    find = tokens.find

    def count(secret: str) -> AccessToken | None:
        looked.append(secret)
        return find(secret)

    monkeypatch.setattr(tokens, "find", count)
    told = [_show(server, f"wrong-{n}").status_code for n in range(20)]
    assert told == [401] * 3 + [429] * 17
    assert looked == ["wrong-0", "wrong-1", "wrong-2"]


def test_a_good_token_is_let_in_from_where_the_flood_comes(
    strict_server: Served, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = strict_server
    monkeypatch.setattr(auth_throttle, "GOOD_FOR", 0.0)
    with follow(server, "admin") as browser:
        assert [_show(server, "wrong").status_code for _ in range(4)][-1] == 429
        assert browser.get("/api/v1/session").status_code == 200
    assert [server(role).get("/session").status_code for role in ("viewer", "worker")] == [200, 200]
    assert _show(
        server, Tokens(engine_of(server.hf)).create("new", role="viewer")["token"]
    ).is_success
    with opened(store_url) as elsewhere:
        granted = Tokens(elsewhere).create("newer", role="viewer")["token"]
    assert eventually(lambda: _show(server, granted).is_success)
    with follow(server, "admin") as browser:
        assert browser.get("/api/v1/session").status_code == 200


def test_a_token_that_is_not_good_any_more_is_counted_as_any_other(strict_server: Served) -> None:
    server = strict_server
    assert _show(server, server.tokens["viewer"]).is_success
    server().delete("/tokens/viewer")
    tried = [_show(server, server.tokens["viewer"]).status_code for _ in range(5)]
    assert tried == [401] * 3 + [429] * 2


def test_a_call_that_is_refused_at_the_gate_is_counted(quick_server: Served) -> None:
    server = quick_server
    _show(server, "wrong")
    server.stranger.post("/api/v1/tasks", headers={"Host": "evil.example"})
    server.stranger.post("/api/v1/tasks", headers={"Origin": "https://evil.example"})
    server.stranger.post("/enter", content=b"x" * 20_000)
    server("viewer").post("/tasks", json={"title": "x"})
    counted = ("unauthorized", "foreign_host", "foreign_origin", "too_large", "forbidden")
    assert {code: value(server, "refusals_total", code=code) for code in counted} == dict.fromkeys(
        counted, 1
    )


def test_the_audit_tells_of_many_refused_strangers_in_one_line(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    caplog.set_level(logging.INFO, "holdfast.audit")
    for number in range(30):
        server.stranger.post(f"/api/v1/{number}{'x' * 900}")
    server.stranger.post("/api/v1/tasks", headers={"Host": "evil.example"})
    server("viewer").post("/tasks", json={"title": "x"})
    server.application.server_state.close()
    said = [each.getMessage() for each in caplog.records if each.name == "holdfast.audit"]
    first, foreign, known, more = said
    assert first.startswith("nobody POST /api/v1/0xxx")
    assert first.endswith("x 401 from 127.0.0.1")
    assert len(first) < 250
    assert foreign == "nobody POST /api/v1/tasks 403 from 127.0.0.1"
    assert known == "viewer (viewer) POST /api/v1/tasks 403"
    assert more == "nobody 29 more 401 from 127.0.0.1"


def test_the_audit_tells_how_many_more_there_were_though_nobody_else_comes(
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "holdfast.audit")
    monkeypatch.setattr(audit_throttle, "WINDOW", 0.5)
    with served(sqlite_url, tmp_path / "home") as server:
        for _ in range(5):
            server.stranger.post("/api/v1/tasks")
        assert eventually(
            lambda: any(
                each.startswith("nobody 4 more 401 from ") for each in list(caplog.messages)
            )
        )
