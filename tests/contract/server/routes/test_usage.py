"""What attempts cost, told over HTTP, and the budget of a run that is raised there."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import engine_of
from holdfast.model.budget import Budget
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.server.local_server import Served
from tests.contract.task_states import start


def test_an_attempt_that_a_usage_limit_stopped_keeps_what_it_has_used(server: Served) -> None:
    task = server.add()
    (got,) = server.claim()
    body = {"token": got["token"], "limit_until": "1h", "usage": {"usd": 3}}
    place = f"/claims/{task['id']}/fail"
    told = server("worker").post(place, json=body).json()["task"]
    assert (told["status"], told["holds"], told["usage"]) == ("queued", ["limit"], {"usd": 3})
    (attempt,) = server.hf.tasks.attempts(task["id"])
    assert (attempt.outcome, attempt.usage) == ("released", {"usd": 3})
    assert server("worker").post(place, json=body).json()["repeated"]


@pytest.mark.parametrize("verb", ["complete", "fail", "renew"])
def test_an_impossible_usage_is_refused_by_its_name(quick_server: Served, verb: str) -> None:
    server = quick_server
    task = server.add()
    (got,) = server.claim()
    wrong = {"token": got["token"], "usage": {"usd": 1, "tokens": -1}}
    path, body = f"/claims/{task['id']}/{verb}", wrong
    if verb == "renew":
        path, body = "/claims/renew", {"leases": [{"task_id": task["id"], **wrong}]}
    told = server("worker").post(path, json=body)
    assert (told.status_code, told.json()["field"]) == (422, "usage.tokens")
    seen = server().get(f"/tasks/{task['id']}").json()
    assert (seen["status"], seen.get("usage")) == ("running", None)


def test_a_usage_limit_holds_all_that_is_in_line_for_the_agent(server: Served) -> None:
    first, second = (server.add(agent="planner")["id"] for _ in range(2))
    beside = server.add(agent="developer")["id"]
    (got,) = server.claim(agents=["planner"])
    body = {"token": got["token"], "limit_until": "1h"}
    assert server("worker").post(f"/claims/{first}/fail", json=body).status_code == 200
    assert server.claim(agents=["planner"], max=9) == []
    late = server.add(agent="planner")
    listed = {each["id"]: each for each in server().get("/tasks").json()["items"]}
    for seen in (late, listed[second], server().get(f"/tasks/{second}").json()):
        assert (seen["state"], seen["holds"]) == ("held", ["limit"])
        assert seen["held_until"] == listed[first]["held_until"]
    assert [each["task"]["id"] for each in server.claim(agents=["developer"])] == [beside]


def test_a_run_at_its_budget_goes_on_when_more_is_added(quick_server: Served) -> None:
    server = quick_server
    declared = WorkflowDeclarations(budget=Budget(usd=1, attempts=1))
    run = start(engine_of(server.hf), Workflow.define("b", (Step(id="one"),), declared=declared))
    (got,) = server.claim()
    body = {"token": got["token"], "usage": {"usd": 2}, "error": "broken"}
    assert server("worker").post(f"/claims/{run.steps['one']}/fail", json=body).json()["ok"]
    resume = f"/runs/{run.id}/resume"
    wrong = server("operator").post(resume, json={"add_attempts": 5, "nonsense": 1})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "nonsense")
    assert server.hf.runs.get(run.id).holds.names == ("budget",)
    told = server("operator").post(resume, json={"add_attempts": 5, "add_usd": 2.5}).json()
    assert (told["ok"], told["run"]["holds"]) == (True, [])
    assert server.hf.runs.get(run.id).budget == Budget(usd=3.5, attempts=6)
