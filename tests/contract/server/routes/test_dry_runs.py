"""Previews over HTTP: what a call would change, told as by the command line."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.contract.server.local_server import Served

FLOW = """
name: letters
steps:
  - {id: write, agent: writer}
  - {id: post, agent: writer, needs: [write]}
agents: {writer: {external: true}}
"""
YAML = {"Content-Type": "application/yaml"}
DRY = {"dry_run": "true"}


def _start(server: Served) -> str:
    server().post("/workflows", content=FLOW, headers=YAML)
    return str(server("operator").post("/runs", json={"workflow": "letters"}).json()["id"])


def _changes(preview: dict[str, Any]) -> dict[str, str]:
    return {each["step"]: each["becomes"] for each in preview["tasks"]}


def test_each_change_of_a_run_is_previewed_and_changes_nothing(server: Served) -> None:
    operator, run = server("operator"), _start(server)
    place = f"/runs/{run}"

    def preview(verb: str, **body: Any) -> dict[str, Any]:
        before = operator.get(place).json()
        told = operator.post(f"{place}/{verb}", params=DRY, json=body or None)
        assert told.status_code == 200, told.text
        assert operator.get(place).json() == before
        found: dict[str, Any] = told.json()
        assert (found["dry_run"], found["id"]) == (True, run)
        return found

    assert _changes(preview("cancel")) == {"write": "cancelled", "post": "cancelled"}
    assert _changes(preview("pause")) == {"write": "held", "post": "blocked"}
    assert operator.post(f"{place}/pause").json()["run"]["holds"] == ["paused"]
    assert _changes(preview("resume")) == {"write": "ready", "post": "blocked"}
    assert operator.post(f"{place}/resume").json()["run"]["holds"] == []
    assert operator.post(f"{place}/cancel").json()["run"]["status"] == "cancelled"
    again = preview("retry", step="write")
    assert _changes(again) == {"write": "ready", "post": "blocked"}
    assert again.get("indirect", 0) == 0
    assert {each["address"] for each in again["tasks"]} == {f"{run}:write", f"{run}:post"}


def test_each_change_of_a_task_is_previewed_and_changes_nothing(server: Served) -> None:
    operator, task = server("operator"), server.add()
    place = f"/tasks/{task['id']}"

    def preview(verb: str) -> str:
        before = operator.get(place).json()
        (told,) = operator.post(f"{place}/{verb}", params=DRY).json()["tasks"]
        assert operator.get(place).json() == before
        return str(told["becomes"])

    assert preview("cancel") == "cancelled"
    assert preview("pause") == "held"
    operator.post(f"{place}/pause")
    assert preview("resume") == "ready"
    operator.post(f"{place}/resume")
    operator.post(f"{place}/cancel")
    assert preview("retry") == "ready"
    assert preview("reopen") == "ready"


def test_a_preview_is_refused_where_the_call_would_be(server: Served) -> None:
    operator, run = server("operator"), _start(server)
    operator.post(f"/runs/{run}/cancel")
    for verb in ("pause", "resume"):
        told = [operator.post(f"/runs/{run}/{verb}", params=each) for each in (DRY, {})]
        assert [each.status_code for each in told] == [409, 409]
        assert told[0].json() == told[1].json()
    assert operator.post("/runs/r_0/cancel", params=DRY).status_code == 404
    assert server("viewer").post(f"/runs/{run}/cancel", params=DRY).status_code == 403
    assert operator.post(f"/runs/{run}/retry", params={"dryrun": "true"}).status_code == 422
    assert operator.get(f"/runs/{run}").json()["status"] == "cancelled"


def test_a_preview_is_no_change_in_the_audit(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    run = _start(quick_server)
    with caplog.at_level(logging.INFO, "holdfast.audit"):
        quick_server("operator").post(f"/runs/{run}/cancel", params=DRY)
        assert caplog.messages == []
        quick_server("operator").post(f"/runs/{run}/retry", params=DRY, json={"step": "no"})
    assert caplog.messages == [f"operator (operator) POST /api/v1/runs/{run}/retry 409 dry run"]


def test_a_plan_and_a_rejection_are_previewed(server: Served) -> None:
    operator, plan = server("operator"), server.add(enqueue=False)
    place = f"/tasks/{plan['id']}/plan"
    operator.post(f"{place}/start")
    for title in ("one", "two"):
        operator.post(f"{place}/children", json={"title": title})
    told = operator.post(f"{place}/finalize", params=DRY).json()["tasks"]
    assert {each["title"]: each["becomes"] for each in told} == {"one": "ready", "two": "blocked"}
    assert operator.get(f"/tasks/{plan['id']}").json()["planning_phase"] == "active"
    flow = "name: asked\nsteps: [{id: ask, approval: Now?}, {id: after, agent: a, needs: [ask]}]\n"
    server().post("/workflows", content=f"{flow}agents: {{a: {{external: true}}}}", headers=YAML)
    run = operator.post("/runs", json={"workflow": "asked"}).json()["id"]
    (ask,) = (
        each["id"] for each in operator.get(f"/runs/{run}").json()["tasks"] if each["step"] == "ask"
    )
    told = operator.post(f"/tasks/{ask}/reject", params=DRY, json={"reason": "no"}).json()
    assert _changes(told)["ask"] == "failed"
    assert operator.get(f"/tasks/{ask}").json()["status"] == "queued"
