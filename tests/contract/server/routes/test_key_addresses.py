"""Keys as addresses over HTTP and MCP: `/runs/key:order-7`, and lists by key and by name."""

from __future__ import annotations

import asyncio
from contextlib import closing

from holdfast.bus import Channel, Consumer, ConsumerOptions, SqlBus, Subscription
from holdfast.engine.engine import engine_of
from tests.contract.server.local_server import Served
from tests.contract.server.routes.test_mcp_tools import enter

LETTERS = "name: letters\nsteps: [{id: write, agent: writer}]\nagents: {writer: {external: true}}"


def test_runs_and_tasks_are_named_by_their_keys(server: Served) -> None:
    admin, operator = server("admin"), server("operator")
    admin.post("/workflows", content=LETTERS, headers={"Content-Type": "application/yaml"})
    run = operator.post("/runs", json={"workflow": "letters", "key": "order-7"}).json()
    task = operator.post("/tasks", json={"title": "send", "step": "mail", "key": "mail/7"}).json()
    assert operator.get("/runs/key:order-7").json()["id"] == run["id"]
    assert operator.post("/runs/key:order-7/pause").json()["run"]["holds"] == ["paused"]
    below = operator.get("/tasks", params={"run": "key:order-7"}).json()["items"]
    assert [each["step"] for each in below] == ["write"]
    assert operator.get("/tasks/key:order-7:write").json()["id"] == below[0]["id"]
    assert operator.get("/runs", params={"key": "order-7"}).json()["items"][0]["id"] == run["id"]
    for asked in ({"key": "mail/7"}, {"step": "mail"}):
        (found,) = operator.get("/tasks", params=asked).json()["items"]
        assert found["id"] == task["id"]
    events = operator.get("/events", params={"run": "key:order-7"}).json()["items"]
    assert {each["run_id"] for each in events} == {run["id"]}
    after = {"title": "then", "needs": ["key:mail/7"]}
    assert operator.post("/tasks", json=after).json()["blocked_by"] == [task["id"]]

    idle = {"title": "plan", "key": "plan-7", "enqueue": False}
    plan = operator.post("/tasks", json=idle).json()
    assert operator.post("/tasks/key:plan-7/plan/start").json()["ok"]
    for parent in ("plan-7", "key:plan-7"):
        part = {"title": "part", "parent": parent, "enqueue": False}
        assert operator.post("/tasks", json=part).json()["parent_id"] == plan["id"]
    for named in ("order-7", "plan-7"):
        for path in (f"/runs/{named}", f"/tasks/{named}"):
            assert operator.get(path).json()["code"] == "not_found"
        for field in ("run", "parent"):
            refused = operator.get("/tasks", params={field: named}).json()
            assert (refused["code"], refused["field"]) == ("invalid_input", field)

    missing = operator.get("/runs/key:order-8")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "near it: 'order-7'" in missing.json()["detail"]
    operator.post("/tasks", json={"title": "other", "key": "order-7"})
    assert operator.get("/runs/key:order-7").json()["id"] == run["id"]
    assert operator.get("/tasks/key:order-7").json()["title"] == "other"


def test_a_key_with_a_slash_acts_on_no_other_task(quick_server: Served) -> None:
    operator = quick_server("operator")
    for key in ("mail", "mail/cancel"):
        operator.post("/tasks", json={"title": key, "key": key})
    for encoded in ("key:mail%2Fcancel", "key%3Amail%2fcancel"):
        told = operator.post(f"/tasks/{encoded}")
        assert (told.status_code, told.json()["code"]) == (404, "not_found")
        assert "GET /tasks?key=" in told.json()["detail"]
    assert operator.get("/tasks/key:mail").json()["status"] == "queued"
    (found,) = operator.get("/tasks", params={"key": "mail/cancel"}).json()["items"]
    assert found["title"] == "mail/cancel"


def test_a_worker_learns_nothing_of_keys(quick_server: Served) -> None:
    operator, worker = quick_server("operator"), quick_server("worker")
    operator.post("/tasks", json={"title": "send", "key": "mail-7"})
    told = [
        worker.post(f"/claims/key:{key}/guard", json={"token": "1.x"}).json()
        for key in ("mail-7", "mail-8")
    ]
    assert [each["code"] for each in told] == ["not_found"] * 2
    assert "near" not in str(told)


def test_tools_take_keys(quick_server: Served) -> None:
    server = quick_server
    made = server("operator").post("/tasks", json={"title": "send", "key": "mail-7"}).json()

    async def ask() -> list[str]:
        async with enter(server, server.tokens["operator"]) as agent:
            shown = await agent.use("get_task", task_id="key:mail-7")
            listed = await agent.use("list_tasks", key="mail-7")
            return [shown["id"], *(each["id"] for each in listed["items"])]

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == [made["id"]] * 2


def test_a_start_takes_options_over_http_and_mcp(quick_server: Served) -> None:
    server = quick_server
    server("admin").post(
        "/workflows", content=LETTERS, headers={"Content-Type": "application/yaml"}
    )
    body = {"workflow": "letters", "key": "k", "priority": 5, "scheduled_for": "2h"}
    operator = server("operator")
    limit = {"key": "repo", "limit": 2}
    run = operator.post("/runs", json={**body, "concurrency": limit}).json()
    assert (run["holds"], run["tasks"][0]["priority"]) == (["scheduled"], 5)
    assert run["tasks"][0]["state"] == "scheduled"
    again = operator.post("/runs", json={**body, "scheduled_for": "5h", "concurrency": "other"})
    assert (again.status_code, again.json()["scheduled_for"]) == (200, run["scheduled_for"])
    why = operator.get("/runs/key:k/why").json()
    assert ", starts 20" in why["summary"]
    assert operator.post("/runs/key:k/resume").json()["run"]["holds"] == []
    for wrong in ({"scheduled_for": "soon"}, {"concurrency": {"key": "repo", "limit": 0}}):
        refused = operator.post("/runs", json={"workflow": "letters", **wrong})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")

    async def ask() -> list[str]:
        async with enter(server, server.tokens["operator"]) as agent:
            made = await agent.use("start_run", workflow="letters", scheduled_for="2h", priority=3)
            return [*made["holds"], made["scheduled_for"][:2]]

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == ["scheduled", "20"]


def test_groups_of_the_bus_are_told_with_their_readers(quick_server: Served) -> None:
    engine = engine_of(quick_server.hf)
    group = Subscription(channel=Channel.COMMANDS, group="shop")
    with closing(SqlBus(engine)) as bus:
        reader = Consumer(engine, bus, group, [], ConsumerOptions(name="shop-a-0"))
        reader.take_share()
        (told,) = quick_server("viewer").get("/bus/groups").json()["items"]
        reader.close()
    assert (told["group"], told["lag"]) == ("shop", 0)
    assert [(each["name"], each["partitions"]) for each in told["readers"]] == [("shop-a-0", 4)]
    assert told["readers"][0]["since"][:2] == "20"
