"""The worker's protocol over HTTP: long polls, repeated pulls, lost replies, stale workers."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.contract.server.local_server import Served, served
from tests.race.racers import eventually


def test_a_worker_claims_keeps_and_completes_a_task(quick_server: Served) -> None:
    server = quick_server
    task = server.add("dig", payload={"deep": 3})
    (got,) = server.claim()
    assert got["task"]["id"] == task["id"]
    assert got["task"]["payload"] == {"deep": 3}
    assert got["attempt"] == 1
    worker = server("worker")
    lease = {"task_id": task["id"], "token": got["token"], "progress": "half"}
    kept = worker.post("/claims/renew", json={"worker": "w", "leases": [lease]})
    assert kept.json() == {"leases": [{"task_id": task["id"], "ok": True}]}
    done = worker.post(
        f"/claims/{task['id']}/complete", json={"token": got["token"], "output": {"n": 1}}
    ).json()
    assert (done["ok"], done["repeated"], done["task"]["status"]) == (True, False, "done")
    again = worker.post(
        f"/claims/{task['id']}/complete", json={"token": got["token"], "output": {"n": 1}}
    ).json()
    assert (again["ok"], again["repeated"]) == (True, True)


def test_a_worker_for_no_agent_is_told_what_to_send(quick_server: Served) -> None:
    server = quick_server
    task = server.add()
    for more in ({}, {"wait_seconds": 20}, {"task_id": task["id"]}):
        asked = {"worker": "nobody", "agents": [], **more}
        refused = server("worker").post("/claims", json=asked)
        assert (refused.status_code, refused.json()["field"]) == (422, "agents")
        assert refused.json()["detail"] == (
            'agents: must name at least one, as ["default"], or be left out'
        )
    told = server("viewer").get("/workers").json()["items"]
    assert "nobody" not in [each["name"] for each in told]
    assert [each["task"]["id"] for each in server.claim(agents=["default"])] == [task["id"]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("worker", "x" * 201),
        ("process", "x" * 10_001),
        ("process", "\0"),
        ("agents", [f"a{number}" for number in range(201)]),
        ("tags", [f"t{number}" for number in range(201)]),
        ("tags", ["x" * 201]),
    ],
)
def test_the_description_of_a_worker_is_short_or_nothing_of_it_is_kept(
    quick_server: Served, field: str, value: str | list[str]
) -> None:
    server = quick_server
    refused = server("worker").post("/claims", json={"worker": "long", field: value})
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert not server.application.server_state.remote_presence.note_renewal("long", token="worker")
    assert "xxx" not in str(vars(server.application.server_state.remote_presence))


def test_a_long_poll_is_answered_as_soon_as_work_is_ready(server: Served) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(server.claim, wait_seconds=20)
        assert eventually(lambda: server.application.server_state.waiting == 1)
        began = time.monotonic()
        task = server.add()
        (got,) = waiting.result(10)
    assert got["task"]["id"] == task["id"]
    assert time.monotonic() - began < 5
    assert server.claim(wait_seconds=0.01) == []


def test_a_token_that_is_revoked_while_it_waits_is_given_nothing(server: Served) -> None:
    with ThreadPoolExecutor() as pool:
        body = {"worker": "w", "wait_seconds": 20}
        waiting = pool.submit(server("worker").post, "/claims", json=body)
        assert eventually(lambda: server.application.server_state.waiting == 1)
        assert server("admin").delete("/tokens/worker").status_code == 200
        task = server.add()
        assert waiting.result(10).status_code == 401
    # What a claim on its way had still got is given back.
    assert eventually(lambda: server.hf.tasks.get(task["id"]).status == "queued")


def test_one_of_many_waiting_workers_gets_the_one_task_and_the_others_wait_on(
    server: Served,
) -> None:
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(server.claim, f"w{n}", wait_seconds=60) for n in range(40)]
        assert eventually(lambda: server.application.server_state.waiting == 40)
        server.add()
        assert eventually(lambda: server.application.server_state.waiting == 39)
        # Whoever still waits is sent away, and not cut off.
        server.drain()
        got = [each.result(20) for each in waiting]
    assert sorted(map(len, got)) == [0] * 39 + [1]


def test_another_server_on_the_store_gives_the_same_and_hears_of_work_at_once(
    server: Served, store_url: str, tmp_path: Path
) -> None:
    with served(store_url, tmp_path / "home", server.tokens) as other:
        task = server.add()
        asked: dict[str, Any] = {"request_id": "r1"}
        (first,) = server.claim(**asked)
        (again,) = other.claim(**asked)
        assert (again["task"]["id"], again["token"]) == (task["id"], first["token"])
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(other.claim, wait_seconds=60)
            assert eventually(lambda: other.application.server_state.waiting == 1)
            later = server.add()
            (got,) = waiting.result(30)
        assert got["task"]["id"] == later["id"]


def test_a_worker_that_hangs_up_waits_no_longer(quick_server: Served) -> None:
    server = quick_server
    body = b'{"worker": "gone", "wait_seconds": 60}'
    head = (
        f"POST /api/v1/claims HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {server.tokens['worker']}\r\n\r\n"
    )
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.sendall(head.encode() + body)
        assert eventually(lambda: server.application.server_state.waiting == 1)
    assert eventually(lambda: server.application.server_state.waiting == 0)
    task = server.add()
    (got,) = server.claim("there")
    assert (got["task"]["id"], got["attempt"]) == (task["id"], 1)


def test_the_same_request_again_gives_the_same_assignments(server: Served) -> None:
    for _ in range(3):
        server.add()
    asked: dict[str, Any] = {"max": 2, "request_id": "r1"}
    first = server.claim(**asked)
    assert len(first) == 2
    again = server.claim(**asked)
    assert [each["token"] for each in again] == [each["token"] for each in first]
    assert [each["task"]["payload"] for each in again if "payload" in each["task"]] == []
    assert server.claim("another", **asked) != []
    other = {"token": first[0]["token"], "output": None}
    server("worker").post(f"/claims/{first[0]['task']['id']}/complete", json=other)
    assert [each["token"] for each in server.claim(**asked)] == [first[1]["token"]]


LATE: dict[str, tuple[dict[str, Any], str]] = {
    "complete": ({"output": 1}, "stale_token"),
    "fail": ({"error": "broken"}, "stale_token"),
    "release": ({}, "stale_token"),
    "ask": ({"question": "Why?"}, "stale_token"),
    "guard": ({}, "already_claimed"),
    "logs": ({"chunk": "late"}, "stale_token"),
    "effects": ({"name": "mail", "value": 1}, "stale_token"),
    "artifacts": ({"name": "a.txt", "content": "late"}, "stale_token"),
    "children": ({"tasks": [{"title": "late"}]}, "stale_token"),
}


def test_a_text_that_is_no_token_of_the_task_is_told_so_by_each_verb(server: Served) -> None:
    task, other = server.add(), server.add("another")
    (got,) = server.claim("w", task_id=other["id"])
    for rubbish in ("1.x", got["token"]):
        for verb, (body, _) in LATE.items():
            refused = server("worker").post(
                f"/claims/{task['id']}/{verb}", json={"token": rubbish, **body}
            )
            told = refused.json()
            assert (refused.status_code, told["code"]) == (409, "stale_token"), verb
            assert told["detail"].startswith("this is no token of this task; "), verb


def test_a_stale_worker_is_refused_by_each_verb_with_its_code(server: Served) -> None:
    task = server.add()
    (stale,) = server.claim("stale", lease_seconds=0.001)
    (fresh,) = server.claim("fresh", wait_seconds=20)
    assert fresh["attempt"] == 2
    before = server.hf.tasks.get(task["id"])
    for verb, (body, code) in LATE.items():
        late = server("worker").post(
            f"/claims/{task['id']}/{verb}", json={"token": stale["token"], **body}
        )
        assert (late.status_code, late.json()["code"]) == (409, code), verb
        assert late.headers["content-type"] == "application/problem+json"
    lease = {"task_id": task["id"], "token": stale["token"]}
    told = server("worker").post("/claims/renew", json={"leases": [lease]}).json()["leases"]
    assert told == [{"task_id": task["id"], "ok": False, "reason": "stale_token"}]
    told = server("worker").post("/claims/complete", json={"results": [lease]}).json()["results"]
    assert [(each["ok"], each["reason"]) for each in told] == [(False, "stale_token")]
    assert server.hf.tasks.get(task["id"]) == before


WAITING = "name: post\nsteps: [{id: a, agent: p}]\nagents: {p: {external: true}}"


def test_a_signal_is_heard_once_by_the_worker_that_waited_for_it(server: Served) -> None:
    yaml = {"Content-Type": "application/yaml"}
    assert server().post("/workflows", content=WAITING, headers=yaml).status_code == 201
    run = server("operator").post("/runs", json={"workflow": "post"}).json()["id"]

    def send(payload: int) -> None:
        said = {"name": "go", "payload": payload}
        assert server("operator").post(f"/runs/{run}/signals", json=said).status_code == 200

    def claim(**more: Any) -> tuple[str, dict[str, str]]:
        (got,) = server.claim(agents=["p"], **more)
        return f"/claims/{got['task']['id']}", {"token": got["token"]}

    def release(place: str, held: dict[str, str], **more: Any) -> str:
        body = {**held, "wait_for": "go", **more}
        answer = server("worker").post(f"{place}/release", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["task"]["state"])

    def recall(place: str, held: dict[str, str]) -> dict[str, Any]:
        return dict(server("worker").post(f"{place}/effects", json=held).json())

    place, held = claim()
    for name in ("wait 1", "wait 1 heard"):
        odd = {**held, "name": name, "value": [1]}
        assert server("worker").post(f"{place}/effects", json=odd).status_code == 200
    assert release(place, held) == "waiting"
    send(1)
    place, held = claim()
    assert release(place, held) == "ready", "what it remembers of its own hides its first wait"
    place, held = claim()
    assert recall(place, held)["signals"] == recall(place, held)["signals"] == {"go": 1}
    send(2)
    send(3)
    assert release(place, held) == "ready"
    place, held = claim()
    assert release(place, held) == "ready", "the second was taken by whoever was woken for it"
    place, held = claim()
    assert recall(place, held)["signals"] == {"go": 3}
    assert release(place, held, until="0.01s", note={"name": "n", "value": 1}) == "waiting"
    place, held = claim(wait_seconds=20)
    told = recall(place, held)
    assert (told["signals"], told["effects"]["n"]) == ({"go": 3}, 1)
    late = server("worker").post(f"{place}/effects", json={"token": "1.x"})
    assert (late.status_code, late.json()["code"]) == (409, "stale_token")
