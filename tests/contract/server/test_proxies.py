"""Addresses that callers name themselves: believed from configured proxies, and nobody else."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.server.auth.rate_limits import Rate
from holdfast.server.gate import GateRules
from holdfast.server.proxies import Proxies
from tests.contract.server.local_server import Served, served

SELDOM = Rate(per_second=0.01, burst=3)
NAMES = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Client-IP", "CF-Connecting-IP")


def _show_wrong_tokens(server: Served) -> list[int]:
    told = list[int]()
    for number in range(6):
        address = f"203.0.113.{number}"
        claimed = dict.fromkeys(NAMES, address) | {"Forwarded": f"for={address}"}
        headers = {"Authorization": "Bearer wrong", **claimed}
        told.append(server.stranger.post("/api/v1/tasks", headers=headers).status_code)
    return told


@pytest.mark.parametrize("proxies", [(), ("10.0.0.0/8",)])
def test_the_limit_on_wrong_tokens_and_the_audit_go_by_the_address_that_asks(
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    proxies: Sequence[str],
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    caplog.set_level(logging.INFO, "holdfast.audit")
    rules = GateRules(failures=SELDOM, proxies=Proxies.read(proxies))
    with served(sqlite_url, tmp_path / "home", rules=rules) as server:
        assert _show_wrong_tokens(server) == [401] * 3 + [429] * 3
    assert "203.0.113" not in caplog.text
    assert "nobody POST /api/v1/tasks 401 from 127.0.0.1" in caplog.messages


def test_each_caller_behind_a_configured_proxy_is_counted_for_itself(
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    caplog.set_level(logging.INFO, "holdfast.audit")
    rules = GateRules(failures=SELDOM, proxies=Proxies.read(["127.0.0.1"]))
    with served(sqlite_url, tmp_path / "home", rules=rules) as server:
        assert _show_wrong_tokens(server) == [401] * 6
    assert "nobody POST /api/v1/tasks 401 from 203.0.113.5" in caplog.messages
