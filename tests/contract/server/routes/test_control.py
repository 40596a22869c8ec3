"""What the command line can steer can be steered over HTTP as well."""

from __future__ import annotations

from tests.contract.server.local_server import Served

FLOW = "name: letters\nsteps: [{id: write, agent: writer}]\nagents: {writer: {external: true}}"
YAML = {"Content-Type": "application/yaml"}


def test_a_task_is_paused_resumed_and_done_again(server: Served) -> None:
    operator, task = server("operator"), server.add()
    place = f"/tasks/{task['id']}"
    assert operator.post(f"{place}/pause").json()["task"]["holds"] == ["paused"]
    assert operator.post(f"{place}/resume").json()["task"]["holds"] == []
    (got,) = server.claim()
    assert operator.post(f"{place}/reopen").status_code == 409
    done = {"token": got["token"], "output": 1}
    assert server("worker").post(f"/claims/{task['id']}/complete", json=done).status_code == 200
    again = operator.post(f"{place}/reopen").json()["task"]
    assert (again["status"], again["generation"]) == ("queued", task["generation"] + 1)


def test_tasks_are_found_by_their_workflow_and_done_again_from_a_step(server: Served) -> None:
    operator = server("operator")
    assert server().post("/workflows", content=FLOW, headers=YAML).status_code == 201
    place = f"/runs/{operator.post('/runs', json={'workflow': 'letters'}).json()['id']}"
    server.add(agent="writer", enqueue=False)
    for given, found in (({}, 1), ({"status": "done"}, 0), ({"agent": "nobody"}, 0)):
        asked = {"workflow": "letters", **given}
        assert len(operator.get("/tasks", params=asked).json()["items"]) == found
    page = operator.get("/tasks", params={"workflow": "letters", "limit": 1}).json()
    for asked in ({"workflow": "other"}, {"workflow": "letters", "after": page["next"]}):
        assert operator.get("/tasks", params=asked).json() == {"items": []}
    both = operator.get("/tasks", params={"workflow": "letters", "run": place[6:]})
    assert (both.status_code, both.json()["field"]) == (422, "workflow")
    for said in ({"step": "write"}, {"from": "write"}):
        (got,) = server.claim(agents=["writer"])
        done = server("worker").post(
            f"/claims/{got['task']['id']}/complete", json={"token": got["token"]}
        )
        assert done.json()["task"]["status"] == "done"
        assert operator.post(f"{place}/retry", json=said).json()["run"]["status"] == "running"
    refused = operator.post(f"{place}/retry", json={"step": "write", "from": "write"})
    assert refused.status_code == 422


def test_a_run_is_started_with_a_deadline(quick_server: Served) -> None:
    server = quick_server
    assert server().post("/workflows", content=FLOW, headers=YAML).status_code == 201
    made = server("operator").post("/runs", json={"workflow": "letters", "deadline": "2h"})
    assert made.json()["deadline"] > made.json()["created_at"]
    refused = server("operator").post("/runs", json={"workflow": "letters", "deadline": "soon"})
    assert (refused.status_code, refused.json()["field"]) == (422, "deadline")


def test_schedules_are_added_steered_and_removed(quick_server: Served) -> None:
    server, operator = quick_server, quick_server("operator")
    assert server().post("/workflows", content=FLOW, headers=YAML).status_code == 201
    nightly = {"name": "nightly", "cron": "30 2 * * *", "zone": "Europe/Berlin"}
    made = operator.post("/schedules", json={**nightly, "workflow": "letters", "input": {}})
    assert (made.status_code, made.json()["workflow"]) == (201, "letters"), made.text
    lone = {"name": "tidy", "cron": "0 * * * *", "task": {"title": "tidy up", "agent": "janitor"}}
    assert operator.post("/schedules", json=lone).json()["task"] == "tidy up"
    for wrong in ({}, {"workflow": "letters", "task": {"title": "x"}}):
        refused = operator.post("/schedules", json={**nightly, **wrong})
        assert (refused.status_code, refused.json()["field"]) == (422, "workflow")
    assert operator.post("/schedules/nightly/pause").json()["repeated"] is False
    assert operator.post("/schedules/nightly/resume").status_code == 200
    assert operator.delete("/schedules/nightly").status_code == 200
    assert operator.delete("/schedules/nobody").status_code == 404
    names = [each["name"] for each in server("viewer").get("/schedules").json()["items"]]
    assert names == ["tidy"]


def test_a_verb_that_changes_nothing_is_told_as_repeated(quick_server: Served) -> None:
    server, operator = quick_server, quick_server("operator")
    assert server().post("/workflows", content=FLOW, headers=YAML).status_code == 201
    run = operator.post("/runs", json={"workflow": "letters"}).json()["id"]
    for place in (f"/runs/{run}", f"/tasks/{server.add()['id']}"):
        for verb in ("pause", "resume", "cancel", "retry"):
            said = [operator.post(f"{place}/{verb}") for _ in range(2)]
            assert [each.status_code for each in said] == [200, 200], said[1].text
            assert [each.json()["repeated"] for each in said] == [False, True]
    (got,) = server.claim()
    done = {"token": got["token"], "output": 1}
    task = got["task"]["id"]
    assert server("worker").post(f"/claims/{task}/complete", json=done).status_code == 200
    refused = operator.post(f"/tasks/{task}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "already_terminal")
    assert "has ended done" in refused.json()["detail"]


def test_a_task_is_linked_to_another_and_let_go(quick_server: Served) -> None:
    server, operator = quick_server, quick_server("operator")
    first, second = server.add("first")["id"], server.add("second")["id"]
    needs = {"needs": [first]}
    linked = operator.post(f"/tasks/{second}/block", json=needs).json()
    assert (linked["ok"], linked["task"]["blocked_by"]) == (True, [first])
    assert operator.post(f"/tasks/{second}/unblock", json=needs).json()["task"]["blocked_by"] == []
    assert operator.post(f"/tasks/{second}/block", json=needs).status_code == 200
    wrong = {
        "is a cycle": {"needs": [second]},
        "is not a task of this store": {"needs": ["t_" + "0" * 20]},
        "name at least one": {"needs": []},
    }
    for told, body in wrong.items():
        refused = operator.post(f"/tasks/{first}/block", json=body)
        assert (refused.status_code, refused.json()["field"]) == (422, "needs"), refused.text
        assert told in refused.json()["detail"]
    assert operator.post(f"/tasks/{first}/block", json={}).status_code == 422
    assert operator.post(f"/tasks/t_{'0' * 20}/unblock").status_code == 404
    assert server("worker").post(f"/tasks/{second}/unblock").status_code == 403
    assert operator.post(f"/tasks/{first}/cancel").status_code == 200
    refused = operator.post(f"/tasks/{first}/block", json={"needs": [second]})
    assert refused.status_code == 422
    assert operator.post(f"/tasks/{second}/unblock").json()["task"]["blocked_by"] == []
    refused = operator.post(f"/tasks/{first}/block", json={"needs": [second]})
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    assert "it has ended cancelled" in refused.json()["detail"]
