"""Runs, tasks, plans and history over HTTP, in the shapes that the contract gives them."""

from __future__ import annotations

from typing import Any

from holdfast.engine.input.host_tags import make_host_tag
from tests.contract.server.local_server import Served

HELLO = """
name: hello
input: {name: string}
agents: {sender: {external: true}}
steps:
  - {id: greet, run: [echo, "hello {{ input.name }}"]}
  - {id: approve, approval: "Send it?"}
  - {id: send, agent: sender, prompt: "Send it to {{ input.name }}"}
"""
YAML = {"Content-Type": "application/yaml"}


def test_a_key_of_a_workflow_that_has_changed_tells_both_versions(server: Served) -> None:
    admin = server("admin")
    first, second = (
        admin.post("/workflows", content=text, headers=YAML).json()["version"]
        for text in (HELLO, HELLO.replace("Send it?", "Send it now?"))
    )
    assert first != second
    body: dict[str, Any] = {"workflow": "hello", "input": {"name": "Ada"}, "key": "versions"}
    begun = admin.post("/runs", json={**body, "version": first}).json()
    assert "asked_version" not in begun
    again = admin.post("/runs", json=body)
    assert (again.status_code, again.json()["id"]) == (200, begun["id"])
    assert (again.json()["workflow_version"], again.json()["asked_version"]) == (first, second)


def test_a_word_that_only_stands_for_an_answer_is_no_answer(server: Served) -> None:
    task = server.add()
    told = server("operator").post(f"/tasks/{task['id']}/answer", json={"answer": "<answer>"})
    assert (told.status_code, told.json()["code"]) == (422, "invalid_input")
    assert "'<answer>' only stands for the answer; write the answer" in told.json()["detail"]


def test_a_workflow_is_defined_started_steered_and_told(server: Served) -> None:
    admin, operator = server("admin"), server("operator")
    made = admin.post("/workflows", content=HELLO, headers=YAML)
    assert made.status_code == 201, made.text
    again = admin.post("/workflows", content=HELLO, headers=YAML)
    assert (again.status_code, again.json()["version"]) == (200, made.json()["version"])
    shown = operator.get("/workflows/hello")
    assert shown.json()["version"] == made.json()["version"]
    assert ":null" not in shown.text
    wrong = admin.post("/workflows", content="name: x\nsteps: [{id: a, nedds: []}]", headers=YAML)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_workflow")
    mistake = wrong.json()["mistakes"][1]
    assert (mistake["line"], mistake["hint"]) == (2, "did you mean 'needs'?")

    body: dict[str, Any] = {"workflow": "hello", "input": {"name": "Ada"}, "key": "k"}
    run = operator.post("/runs", json=body)
    assert run.status_code == 201, run.text
    told = run.json()
    assert (told["workflow"], told["status"], told["key"]) == ("hello", "running", "k")
    assert operator.post("/runs", json=body).status_code == 200
    other = operator.post("/runs", json={**body, "input": {"name": "Bob"}})
    assert (other.status_code, other.json()["code"]) == (409, "key_conflict")
    assert (other.json()["existing"], other.json()["differing"]) == (told["id"], ["name"])
    assert "whose argument differs: name" in other.json()["detail"]
    sooner = operator.post("/runs", json={**body, "priority": 7, "deadline": "5m"})
    assert (sooner.status_code, sooner.json()["created"]) == (200, False)
    assert sooner.json() == {**told, "created": False}
    bad = operator.post("/runs", json={"workflow": "hello", "input": {"name": 7}})
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_input")
    none = operator.post("/runs", json={"workflow": "goodbye"})
    assert (none.status_code, none.json()["code"]) == (404, "not_found")

    place = f"/runs/{told['id']}"
    assert operator.post(f"{place}/pause").json()["run"]["holds"] == ["paused"]
    assert "paused" in operator.get(f"{place}/why").json()["summary"]
    assert operator.post(f"{place}/resume").json()["run"]["holds"] == []
    approval = next(each for each in told["tasks"] if each["step"] == "approve")
    early = operator.post(f"/tasks/{approval['id']}/approve")
    assert (early.status_code, early.json()["code"]) == (409, "invalid_transition")
    sent = operator.post(f"{place}/signals", json={"name": "go"}).json()
    assert (sent["ok"], sent["waited_for"], sent["awaited"]) == (True, False, [])
    cancelled = operator.post(f"{place}/cancel").json()
    assert (cancelled["ok"], cancelled["run"]["status"]) == (True, "cancelled")
    listed = operator.get("/runs", params={"status": "cancelled", "workflow": "hello"}).json()
    assert [each["id"] for each in listed["items"]] == [told["id"]]
    events = operator.get(f"{place}/events", params={"limit": 1}).json()
    assert operator.get("/events", params={"limit": 1, "run": told["id"]}).json() == events
    assert events["items"][0]["type"] == "run.started"
    more = operator.get(f"{place}/events", params={"after": events["next"]}).json()["items"]
    assert {"run.cancelled", "task.cancelled"} <= {each["type"] for each in more}


def test_a_program_is_told_the_tag_by_which_it_claims_a_task_in_a_folder(server: Served) -> None:
    admin, here = server("admin"), make_host_tag()
    flow = HELLO.replace("name: hello", "name: hello\nworkspace: /work/shop", 1)
    flow = flow.replace("steps:", "steps:\n  - {id: draw, agent: sender, prompt: draw}")
    assert admin.post("/workflows", content=flow, headers=YAML).status_code == 201
    run = admin.post("/runs", json={"workflow": "hello", "input": {"name": "Ada"}}).json()
    task = next(each for each in run["tasks"] if each["step"] == "draw")
    why = admin.get(f"/tasks/{task['id']}/why").text
    assert f"whoever claims it with the tags {here}" in why
    worker, offer = server("worker"), {"worker": "me", "agents": ["sender"]}
    assert worker.post("/claims", json=offer).json()["assignments"] == []
    found = worker.post("/claims", json={**offer, "tags": [here]}).json()["assignments"]
    assert [each["task"]["id"] for each in found] == [task["id"]]


def test_tasks_are_made_changed_planned_and_steered(quick_server: Served) -> None:
    server = quick_server
    operator = server("operator")
    many = operator.post("/tasks", json={"tasks": [{"title": "a"}, {"title": "b", "key": None}]})
    assert many.status_code == 201
    first, second = many.json()["items"]
    assert operator.get("/tasks", params={"limit": 1}).json()["next"] == second["id"]
    none = operator.post("/tasks", json={"tasks": [{"title": "c"}, {"title": ""}, {"title": 7}]})
    assert none.status_code == 422
    assert len(operator.get("/tasks").json()["items"]) == 2
    for known in (201, 200):
        keyed = operator.post("/tasks", json={"tasks": [{"title": "d", "key": "d"}]})
        assert (keyed.status_code, len(keyed.json()["items"])) == (known, 1)

    place = f"/tasks/{first['id']}"
    changed = operator.patch(place, json={"priority": 5, "scheduled_for": "2090-01-01T00:00:00Z"})
    assert changed.json()["task"]["state"] == "scheduled"
    stale = operator.patch(place, json={"title": "z"}, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["code"]) == (409, "version_conflict")
    assert operator.post(f"{place}/run-now").json()["task"]["state"] == "ready"
    assert operator.get(f"{place}/why").json()["claimable"]
    assert operator.post(f"{place}/cancel").json()["task"]["status"] == "cancelled"
    more = {"message": "and the docs"}
    assert operator.post(f"{place}/continue", json=more).json()["task"]["status"] == "queued"
    assert server.claim(task_id=first["id"])[0]["task"]["payload"] == {"feedback": "and the docs"}
    assert operator.post(f"{place}/continue", json=more).json()["code"] == "invalid_transition"
    assert operator.post(f"{place}/cancel").json()["task"]["status"] == "cancelled"
    assert operator.post(f"{place}/retry").json()["task"]["status"] == "queued"
    assert operator.post(f"{place}/reset").json()["task"]["status"] == "idle"
    assert operator.post(f"{place}/plan/start").json()["task"]["planning_phase"] == "active"
    children = [
        operator.post(f"{place}/plan/children", json={"title": title}).json()["id"]
        for title in ("one", "two")
    ]
    one, two = children
    by_place = {"tasks": [{"id": one, "position": 1}, {"id": two, "position": 0}]}
    for body in ({"order": [two, one]}, {"order": [one, two]}, by_place):
        order = operator.patch(f"{place}/plan/children", json=body)
        assert (order.status_code, order.json().get("repeated")) == (200, False), order.text
    partly = operator.patch(f"{place}/plan/children", json={"tasks": [{"id": two}]})
    assert (partly.status_code, partly.json()["field"]) == (422, "order")
    assert operator.post(f"{place}/plan/finalize").json()["task"]["planning_phase"] == "finalized"
    late = operator.post(f"{place}/plan/children", json={"title": "three"})
    assert (late.status_code, late.json()["code"]) == (409, "invalid_transition")
    nowhere = operator.post(f"/tasks/t_{'0' * 20}/plan/children", json={"title": "three"})
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "not_found")
    listed = operator.get("/tasks", params={"parent": first["id"]}).json()["items"]
    assert {each["title"]: each["state"] for each in listed} == {"two": "ready", "one": "blocked"}
    assert operator.delete(f"/tasks/{second['id']}").json()["ok"]
    assert operator.get(f"/tasks/{second['id']}").json()["code"] == "not_found"
    for malformed in ("t_nope", "%00", "r_" + "0" * 20, "t_" + "0" * 20):
        missing = operator.get(f"/tasks/{malformed}")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


def test_the_logs_effects_and_artifacts_of_a_worker_are_there_to_be_looked_at(
    server: Served,
) -> None:
    task = server.add()
    place = f"/claims/{task['id']}"
    worker, viewer = server("worker"), server("viewer")
    (got,) = server.claim("digger")
    held = {"token": got["token"]}
    assert worker.post(f"{place}/guard", json=held).json()["ok"]
    assert worker.post(f"{place}/logs", json={**held, "chunk": "dug\n"}).json()["bytes"] == 4
    effect = {**held, "name": "mail", "value": {"id": 1}}
    assert worker.post(f"{place}/effects", json=effect).json()["value"] == {"id": 1}
    again = worker.post(f"{place}/effects", json={**effect, "value": {"id": 2}}).json()
    assert again["value"] == {"id": 1}
    assert worker.post(f"{place}/effects", json=held).json() == {"effects": {"mail": {"id": 1}}}
    file = {**held, "name": "map.txt", "content": "eA==", "encoding": "base64"}
    assert worker.post(f"{place}/artifacts", json=file).json()["bytes"] == 1
    assert worker.post(f"{place}/artifacts", json=file).status_code == 200
    other = worker.post(f"{place}/artifacts", json={**file, "content": "eXk="})
    assert (other.status_code, other.json()["code"]) == (409, "result_conflict")
    kept = [each.read_text() for each in server.home.glob("artifacts/*/map.txt")]
    assert kept == ["x"]
    for name in ("../up", ".hidden", "a/b"):
        assert worker.post(f"{place}/artifacts", json={**file, "name": name}).status_code == 422
    wanted = {**held, "tasks": [{"title": "child"}]}
    first, again = (worker.post(f"{place}/children", json=wanted) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["items"][0]["title"] == "child"
    (child,) = again.json()["value"]
    listed = {**held, "name": "list", "value": [["t_x"], "t_x", 1]}
    assert worker.post(f"{place}/effects", json=listed).status_code == 200
    for name in ("mail", "list"):
        odd = worker.post(f"{place}/children", json={**held, "name": name, "tasks": []})
        assert (odd.status_code, odd.json()["items"]) == (200, [])
    assert viewer.get(f"/tasks/{child}").json()["parent_id"] == task["id"]
    asked = worker.post(f"{place}/ask", json={**held, "question": "Deeper?"}).json()
    assert asked["task"]["holds"] == ["question"]
    answered = server("operator").post(f"/tasks/{task['id']}/answer", json={"answer": "yes"})
    assert answered.json()["task"]["feedback"] == "yes"
    (got,) = server.claim("digger", task_id=task["id"])
    limit = {"token": got["token"], "error": "limit", "limit_until": "2h"}
    limited = worker.post(f"{place}/fail", json=limit).json()
    assert (limited["task"]["holds"], limited["task"]["failures"]) == (["limit"], 0)
    late = server.add(agent=limited["task"]["agent"])
    assert server.claim("digger", task_id=late["id"]) == []
    lifted = server("operator").post(f"/agents/{late['agent']}/resume").json()
    assert (lifted["repeated"], lifted["tasks"]) == (False, 3), (
        "with its child, and what came later"
    )
    assert len(server.claim("digger", task_id=late["id"])) == 1
    attempts = viewer.get(f"/tasks/{task['id']}/attempts").json()["items"]
    assert [each["outcome"] for each in attempts] == ["released", "released"]
    logs = viewer.get(f"/tasks/{task['id']}/logs", params={"attempt": 1}).json()
    assert (logs["text"], logs["next"]) == ("dug\n", 4)
    effects = viewer.get(f"/tasks/{task['id']}/effects").json()["effects"]
    assert effects["mail"] == {"id": 1}


def test_many_results_are_reported_at_once_each_with_its_answer(quick_server: Served) -> None:
    server = quick_server
    for _ in range(3):
        server.add()
    got = server.claim(max=3)
    results = [{"task_id": each["task"]["id"], "token": each["token"]} for each in got]
    results[2]["token"] = results[0]["token"]
    told = server("worker").post("/claims/complete", json={"results": results}).json()["results"]
    assert [each["ok"] for each in told] == [True, True, False]
    assert told[2]["reason"] == "stale_token"


def test_history_goes_on_from_a_cursor_and_skips_nothing(quick_server: Served) -> None:
    server = quick_server
    viewer = server("viewer")
    server.add()
    page = viewer.get("/events").json()
    assert [each["type"] for each in page["items"]] == ["task.created"]
    event = page["items"][0]
    assert {"seq", "type", "task_id", "version", "to", "attempt", "actor", "at"} <= event.keys()
    assert None not in event["data"].values()
    assert event["title"] == viewer.get(f"/tasks/{event['task_id']}").json()["title"]
    server.add()
    later = viewer.get("/events", params={"after": page["next"]}).json()
    assert len(later["items"]) == 1
    assert viewer.get("/events", params={"after": later["next"]}).json()["items"] == []
    for bad in ("x", "-1", "1.2", "9" * 40):
        assert viewer.get("/events", params={"after": bad}).status_code == 422


def test_agents_workers_schedules_and_readiness_are_told(server: Served) -> None:
    server.add(agent="builder")
    server("worker").post("/claims", json={"worker": "w", "agents": ["builder"]})
    server.add(agent="builder")
    stats = server("viewer").get("/stats").json()
    assert stats["agents"] == {"builder": {"ready": 1, "running": 1}}
    task = server.add(enqueue=False)
    assert server("operator").post(f"/tasks/{task['id']}/retry").status_code == 409
    assert server("worker").get(f"{server.url}/readyz").json() == {"ok": True}
    assert server("viewer").get("/schedules").json() == {"items": []}
    names = [each["name"] for each in server("viewer").get("/workers").json()["items"]]
    assert names == ["w"]
    gone = server("operator").post("/workers/nobody/drain")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
