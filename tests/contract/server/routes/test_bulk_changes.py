"""Bulk changes over HTTP: previewed, begun, asked for and kept in the audit."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from tests.contract.server.local_server import Served

FLOW = "name: letters\nsteps: [{id: write, agent: writer}]\nagents: {writer: {external: true}}"
YAML = {"Content-Type": "application/yaml"}
PATIENCE = 30


def _begin(server: Served, customer: int) -> str:
    server().post("/workflows", content=FLOW, headers=YAML)
    body = {"workflow": "letters", "labels": {"customer": customer}}
    return str(server("operator").post("/runs", json=body).json()["id"])


def _wait(server: Served, bulk_id: str) -> dict[str, Any]:
    """What became of a change; how long that takes is of no matter."""
    told: dict[str, Any] = {}
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        told = server("viewer").get(f"/bulk/{bulk_id}").json()
        if "finished_at" in told:
            return told
        time.sleep(0.01)
    raise AssertionError(told)


def test_all_of_one_customer_are_cancelled_after_a_preview(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    operator = server("operator")
    runs = [_begin(server, 7) for _ in range(3)]
    other = _begin(server, 8)
    body = {"labels": {"customer": 7}}
    with caplog.at_level(logging.INFO, "holdfast.audit"):
        preview = operator.post("/runs/cancel", params={"dry_run": "true"}, json=body)
        assert (preview.status_code, preview.json()["matched"]) == (200, 3)
        assert caplog.messages == []
        begun = operator.post("/runs/cancel", json=body)
        assert (begun.status_code, begun.json()["matched"]) == (202, 3)
        told = _wait(server, begun.json()["id"])
    assert (told["state"], told["changed"], told["actor"]) == ("done", 3, "operator")
    (entry,) = caplog.messages
    assert entry.startswith("operator (operator) POST /api/v1/runs/cancel 202 " + told["id"])
    assert "3 runs" in entry
    found = {each["id"]: each["status"] for each in operator.get("/runs").json()["items"]}
    assert found == dict.fromkeys(runs, "cancelled") | {other: "running"}
    listed = operator.get("/bulk").json()["items"]
    assert [each["id"] for each in listed] == [told["id"]]
    stopped = operator.post(f"/bulk/{told['id']}/stop")
    assert stopped.json()["state"] == "done"
    again = operator.post("/runs/retry", json={**body, "status": "cancelled"})
    assert _wait(server, again.json()["id"])["changed"] == 3


def test_a_call_for_everything_has_to_say_so_and_who_may_not_is_refused(
    quick_server: Served,
) -> None:
    server = quick_server
    _begin(server, 7)
    refused = server("operator").post("/runs/pause", json={})
    assert (refused.status_code, refused.json()["field"]) == (422, "all")
    assert server("viewer").post("/runs/pause", json={"all": True}).status_code == 403
    assert server("operator").get("/bulk/b_none").status_code == 404
    begun = server("operator").post("/runs/pause", json={"all": True})
    assert _wait(server, begun.json()["id"])["changed"] == 1
    paused = server("viewer").get("/runs", params={"held": "paused"}).json()["items"]
    assert len(paused) == 1
    begun = server("operator").post("/runs/resume", json={"workflow": "letters"})
    assert _wait(server, begun.json()["id"])["changed"] == 1
