"""Runs and tasks that were removed: their keys are taken still, and they say that they are gone."""

from __future__ import annotations

from holdfast.engine.engine import engine_of
from holdfast.engine.surroundings.removal import RUNS, TASKS
from tests.contract.server.local_server import Served

HELLO = {"name": "once", "steps": [{"id": "a", "run": ["true"]}]}


def test_a_start_with_the_key_of_what_was_removed_gives_back_what_is_left(server: Served) -> None:
    admin, engine = server("admin"), engine_of(server.hf)
    assert admin.post("/workflows", json=HELLO).status_code in {200, 201}
    bodies = {"/runs": {"workflow": "once", "key": "k"}, "/tasks": {"title": "t", "key": "k"}}
    for path, body in bodies.items():
        made = admin.post(path, json=body).json()
        assert admin.post(f"{path}/{made['id']}/cancel").is_success
        kind = RUNS if path == "/runs" else TASKS
        assert made["id"] in engine.removals.remove(kind, engine.now()).gone
        again = admin.post(path, json=body)
        told = again.json()
        assert (again.status_code, told["id"], told["status"]) == (200, made["id"], "cancelled")
        assert "removed_at" in told
        assert admin.post(path, json={**body, "priority": 3}).json()["id"] == made["id"]
        given = {"input": {"a": 1}} if path == "/runs" else {"payload": 1}
        other = admin.post(path, json={**body, **given})
        assert (other.status_code, other.json()["code"]) == (409, "key_conflict")
        assert "which has other arguments" in other.json()["detail"]
        gone = admin.get(f"{path}/{made['id']}")
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
        assert "removed" in gone.json()["detail"]
    several = admin.post("/tasks", json={"tasks": [bodies["/tasks"], {"title": "new"}]})
    assert [each["created"] for each in several.json()["items"]] == [False, True]
