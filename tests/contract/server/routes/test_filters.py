"""Labels and filters over HTTP: who asks for what, and how it is spelt."""

from __future__ import annotations

from typing import Any

from tests.contract.server.local_server import Served

FLOW = """
name: letters
labels: {customer: "{{ input.customer }}"}
input: {customer: integer?}
steps: [{id: write, agent: writer}]
agents: {writer: {external: true}}
"""
YAML = {"Content-Type": "application/yaml"}


def test_runs_and_tasks_are_found_by_labels(server: Served) -> None:
    operator = server("operator")
    assert server().post("/workflows", content=FLOW, headers=YAML).status_code == 201

    def begin(customer: int | None, **labels: str) -> str:
        given = {} if customer is None else {"customer": customer}
        body = {"workflow": "letters", "input": given, "labels": labels}
        return str(operator.post("/runs", json=body).json()["id"])

    def found(path: str, *labels: str, **filters: Any) -> list[str]:
        asked = {"label": list(labels), **filters}
        page = operator.get(path, params=asked)
        assert page.status_code == 200, page.text
        return [each["id"] for each in page.json()["items"]]

    seven, eight, plain = begin(7, env="prod"), begin(8, env="prod"), begin(None)
    task = server.add(labels={"customer": 7})
    assert task["labels"] == operator.get(f"/tasks/{task['id']}").json()["labels"]
    assert operator.get(f"/runs/{seven}").json()["labels"] == {"customer": "7", "env": "prod"}
    assert "labels" not in operator.get(f"/runs/{plain}").json()
    assert found("/runs", "customer=7") == [seven]
    assert found("/runs", "env=prod", "customer=8") == [eight]
    assert found("/runs", "env=prod", agent="writer", since="1h") == [eight, seven]
    assert found("/runs", "env=prod", status="failed") == []
    assert task["id"] in found("/tasks", "customer=7")
    assert len(found("/tasks", "customer=7")) == 2
    counted = operator.get("/runs/counts", params={"label": "env=prod"}).json()
    statuses = {"running": 2, "completed": 0, "failed": 0, "cancelled": 0}
    assert counted == {"total": 2, "statuses": statuses}
    refused = operator.get("/runs", params={"label": "customer"})
    assert (refused.status_code, refused.json()["field"]) == (422, "label")
    twice = operator.get("/runs?status=failed&status=running")
    assert (twice.status_code, twice.json()["field"]) == (422, "status")


def test_a_filter_that_is_misspelt_or_wrong_is_refused(quick_server: Served) -> None:
    viewer = quick_server("viewer")
    for path in ("/runs", "/runs/counts", "/tasks"):
        for name, value in {"since": "soon", "error": " ", "name": "", "lable": "a=b"}.items():
            refused = viewer.get(path, params={name: value})
            assert (refused.status_code, refused.json()["field"]) == (422, name), path
    body = {"title": "a", "labels": {"a": ["b"]}}
    assert quick_server("operator").post("/tasks", json=body).status_code == 422


def test_a_run_is_read_as_it_stood_after_an_event(server: Served) -> None:
    operator = server("operator")
    assert server().post("/workflows", content=FLOW, headers=YAML).status_code == 201
    run = operator.post("/runs", json={"workflow": "letters"}).json()["id"]
    begun = operator.get(f"/runs/{run}/events").json()["items"][-1]["seq"]
    before = operator.get(f"/runs/{run}").json()
    assert operator.post(f"/runs/{run}/cancel").json()["run"]["status"] == "cancelled"
    past = server("viewer").get(f"/runs/{run}", params={"at": begun}).json()
    assert past.pop("as_of")["seq"] == begun
    assert past == before
    refused = operator.get(f"/runs/{run}", params={"at": 0})
    assert (refused.status_code, refused.json()["field"]) == (422, "at")


def test_versions_are_listed_and_definitions_are_checked(quick_server: Served) -> None:
    server = quick_server
    operator = server("operator")
    for text in (FLOW, FLOW.replace("id: write", "id: post")):
        assert server().post("/workflows", content=text, headers=YAML).status_code == 201
    newest, oldest = operator.get("/workflows/letters/versions").json()["items"]
    known = operator.get("/workflows/letters", params={"version": oldest["version"]}).json()
    assert [step["id"] for step in known["steps"]] == ["write"]
    assert newest["version"] == operator.get("/workflows/letters").json()["version"]
    assert operator.get("/workflows/none/versions").status_code == 404
    bad = FLOW.replace("agent: writer}]", "agnet: writer}]")
    told = operator.post("/workflows/validate", content=bad, headers=YAML).json()
    (mistake,) = [each for each in told["mistakes"] if "agnet" in each["message"]]
    assert (told["ok"], mistake["line"], mistake["column"]) == (False, 5, 21)
    assert "agent" in mistake["hint"]
    good = operator.post("/workflows/validate", content=FLOW, headers=YAML).json()
    assert (good["ok"], good["version"], good["mistakes"]) == (True, oldest["version"], [])
    other = FLOW.replace("letters", "bills")
    assert operator.post("/workflows/validate", content=other, headers=YAML).json()["ok"]
    assert operator.get("/workflows/bills").status_code == 404
    assert (
        server("viewer").post("/workflows/validate", content=FLOW, headers=YAML).status_code == 403
    )


def test_activity_and_costs_are_told_to_who_looks(quick_server: Served) -> None:
    task = quick_server.add()
    (got,) = quick_server.claim()
    done = {"token": got["token"], "usage": {"usd": 0.5}}
    assert quick_server("worker").post(f"/claims/{task['id']}/complete", json=done).is_success
    viewer = quick_server("viewer")
    hours = viewer.get("/activity", params={"hours": 2}).json()["items"]
    assert sum(each["tasks"]["done"] for each in hours) == 1
    assert viewer.get("/costs", params={"days": 2}).json()["usd"] == 0.5
    assert viewer.get("/costs", params={"days": 0}).status_code == 422
