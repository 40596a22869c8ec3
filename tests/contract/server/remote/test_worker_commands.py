"""The commands for workers, through a server as on a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contract.cli.command_line import Typed, logs_as_before
from tests.contract.http_service import Reply, service
from tests.contract.server.local_server import Served


def test_a_script_works_through_a_server_as_it_does_on_the_store(
    quick_server: Served,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server, typed = quick_server, Typed(capsys)
    monkeypatch.setenv("HOLDFAST_SERVER", server.url)
    monkeypatch.setenv("HOLDFAST_TOKEN", server.tokens["worker"])
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "away"))
    task = server.add(agent="a")["id"]
    (got,) = json.loads(typed.ok("work", "claim", "--agent", "a"))["assignments"]
    monkeypatch.setenv("HOLDFAST_TASK", task)
    monkeypatch.setenv("HOLDFAST_ATTEMPT_TOKEN", got["token"])
    assert "is running" in typed.ok("work", "renew", "--progress", "half")
    typed.ok("work", "log", "--text", "on it")
    typed.ok("guard")
    assert "is scheduled" in typed.ok("work", "release", "--until", "2100-01-01")
    assert server().get(f"/tasks/{task}/logs").json()["text"] == "on it\n"
    late = typed.refused(1, "work", "complete")
    # What is typed here looks at a store, and this was asked of a server.
    assert ("stale_token" in late, "next:" in late) == (True, False)
    assert "stale_token" in typed.refused(1, "work", "renew")
    assert "lease_expired" in typed.refused(1, "guard")
    assert "is not an id" in typed.refused(2, "guard", "t_1")
    second = server.add(agent="a")["id"]
    (got,) = json.loads(typed.ok("work", "claim", second))["assignments"]
    failed = ("work", "fail", second, "--token", got["token"], "--final", "--error", "no")
    assert "is failed" in typed.ok(*failed)
    assert typed("work", "claim", "--agent", "a").code == 1
    monkeypatch.setenv("HOLDFAST_TOKEN", "hf_nobody")
    assert f"{server.url} does not take it" in typed.refused(2, "guard")


def test_a_worker_whose_token_is_not_good_says_nothing_but_that(
    quick_server: Served,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server, home = quick_server, tmp_path / "away"
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    said = {}
    with logs_as_before():
        for role in ("nobody", "viewer"):
            monkeypatch.setenv("HOLDFAST_TOKEN", server.tokens.get(role, "hf_nobody"))
            said[role] = Typed(capfd).refused(2, "worker", "--server", server.url)
    assert said["nobody"].startswith(f"error: token: {server.url} does not take it")
    assert said["viewer"].startswith(f"error: token: that for {server.url} has the role viewer")
    for told in said.values():
        assert ("has started" in told, "allows nothing" in told) == (False, False)
        assert len(told.splitlines()) <= 2
    assert not home.exists()


def test_a_worker_whose_token_is_not_taken_any_more_ends_and_says_so(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", "hf_revoked_later")
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "away"))
    revoked = {"type": "urn:holdfast:problem:unauthorized", "code": "unauthorized", "detail": "no"}
    good, bad = (
        Reply(body=b'{"role": "worker"}'),
        Reply(status=401, body=json.dumps(revoked).encode()),
    )
    with service(good, bad) as server, logs_as_before():
        said = Typed(capfd)("worker", "--server", server.url, "--name", "far")
    assert said.code == 2
    assert f"error: token: {server.url} does not take it" in said.err
    assert "This worker allows nothing" in said.err
    assert "Traceback" not in said.err
