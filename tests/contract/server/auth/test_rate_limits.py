"""Limits on how often: 429 with when to come back, and nobody else is hurt by it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from holdfast.errors import StoreUnreachable
from holdfast.server.auth.rate_limits import Rate
from holdfast.server.gate import GateRules
from holdfast.worker.remote.client import ServerClient
from tests.contract.server.local_server import served

SELDOM = Rate(per_second=0.01, burst=3)


def _told(answer: httpx.Response) -> str:
    return f"{answer.status_code} {answer.json().get('code')}"


def test_a_token_that_asks_too_often_is_told_when_to_come_back(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(sqlite_url, tmp_path / "home", rules=GateRules(rate=SELDOM)) as server:
        assert [server("viewer").get("/runs").status_code for _ in range(3)] == [200] * 3
        refused = server("viewer").get("/runs")
        assert _told(refused) == "429 too_many_requests"
        assert 0 < int(refused.headers["retry-after"]) <= 100
        assert refused.headers["content-type"] == "application/problem+json"
        assert server("operator").get("/runs").status_code == 200
        worker = ServerClient(server.url, server.tokens["worker"])
        for _ in range(3):
            worker.post("/claims", {"worker": "w"})
        # What a worker is told so is no word on its work: it asks again.
        with pytest.raises(StoreUnreachable, match="too often"):
            worker.post("/claims", {"worker": "w"})
        worker.close()
        assert server.stranger.get("/healthz").status_code == 200


def test_an_address_that_fails_too_often_is_held_up_but_not_who_has_a_good_token(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(sqlite_url, tmp_path / "home", rules=GateRules(failures=SELDOM)) as server:
        bad = {"Authorization": "Bearer nonsense"}
        tried = [server.stranger.get("/api/v1/runs", headers=bad) for _ in range(4)]
        assert [_told(each) for each in tried] == [
            *["401 unauthorized"] * 3,
            "429 too_many_requests",
        ]
        assert "retry-after" in tried[-1].headers
        assert _told(server.stranger.get("/api/v1/runs")) == "401 unauthorized"
        assert server("viewer").get("/runs").status_code == 200
