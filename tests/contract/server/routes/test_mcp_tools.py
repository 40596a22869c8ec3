"""MCP over HTTP: the tools of what a token may do, in the name of whoever asks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from holdfast.engine.engine import engine_of
from holdfast.service.admin.tokens import Tokens
from tests.contract.server.local_server import Served
from tests.mcp_agents import TOOLS, WORKING, Agent, build_a_shed
from tests.race.racers import eventually

TOKENS = {"planner": "operator"}


@asynccontextmanager
async def enter(
    server: Served, token: str, role: str | None = None, mode: str = "auto"
) -> AsyncIterator[Agent]:
    chosen = "" if role is None else f"?as={role}"
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, verify=False) as http,
        Client(
            streamable_http_client(f"{server.url}/mcp{chosen}", http_client=http), mode=mode
        ) as client,
    ):
        yield Agent(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_plans_another_works_and_a_third_judges(
    quick_server: Served, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    caplog.set_level(logging.INFO, "holdfast.audit")

    def as_role(role: str) -> AbstractAsyncContextManager[Agent]:
        return enter(server, server.tokens[TOKENS.get(role, role)], role, mode)

    planned = asyncio.run(asyncio.wait_for(build_a_shed(as_role, WORKING), 60))
    tasks = [server.hf.tasks.get(planned), *server.hf.tasks.list(parent=planned)]
    actors = {each.actor for task in tasks for each in server.hf.tasks.events(task.id)}
    assert actors == {"operator", "worker", "advance"}
    said = [each.getMessage() for each in caplog.records if each.name == "holdfast.audit"]
    assert said[0] == f"operator (operator) MCP create_task ok {planned}"
    refused = [each for each in said if "MCP guard already_terminal" in each]
    assert [each.partition(" t_")[0] for each in refused] == [
        "worker (worker) MCP guard already_terminal"
    ] * 2
    quiet = ("POST /mcp", "MCP get_task ", "guard ok", "renew ok")
    assert not [each for each in said if any(word in each for word in quiet)]
    claims = [each.partition(" t_")[0] for each in said if "MCP claim" in each]
    assert claims == [
        "operator (operator) MCP claim forbidden",
        *["worker (worker) MCP claim ok"] * 2,
    ]


def test_runs_and_logs_are_resources_for_who_may_look(quick_server: Served) -> None:
    server = quick_server
    text = "name: letters\nsteps: [{id: write, agent: writer}]\nagents: {writer: {external: true}}"
    made = server().post("/workflows", content=text, headers={"Content-Type": "application/yaml"})
    assert made.status_code == 201, made.text
    run = server("operator").post("/runs", json={"workflow": "letters"}).json()
    (got,) = server.claim(agents=["writer"])
    task = got["task"]["id"]
    chunk = {"token": got["token"], "chunk": "on it\n"}
    assert server("worker").post(f"/claims/{task}/logs", json=chunk).status_code == 200

    async def story() -> None:
        async with enter(server, server.tokens["viewer"]) as viewer:
            assert await viewer.tools() == TOOLS["viewer"]
            listed = {each.uri: each for each in (await viewer.client.list_resources()).resources}
            assert listed[f"holdfast://runs/{run['id']}"].title == "letters, running"
            shown = json.loads(await viewer.read(f"holdfast://runs/{run['id']}"))
            assert shown["tasks"][0]["id"] == task
            assert json.loads(await viewer.read("holdfast://runs"))["items"][0]["id"] == run["id"]
            assert json.loads(await viewer.read(f"holdfast://tasks/{task}"))["id"] == task
            assert await viewer.read(f"holdfast://tasks/{task}/log") == "on it\n"
            assert await viewer.read(f"holdfast://tasks/{task}/log/1") == "on it\n"
            templates = await viewer.client.list_resource_templates()
            assert len(templates.resource_templates) == 4
            missing = (f"tasks/{task}/log/7", f"tasks/{task}/log/last")
            for wrong in ("runs/r_0000", "tasks/nonsense", *missing):
                with pytest.raises(MCPError, match=r"not_found|invalid_input"):
                    await viewer.read(f"holdfast://{wrong}")
        async with enter(server, server.tokens["worker"]) as worker:
            assert (await worker.client.list_resources()).resources == []
            with pytest.raises(MCPError):
                await worker.read("holdfast://runs")

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_part_that_is_added_again_under_its_key_is_the_same(server: Served) -> None:
    plan = server.add(enqueue=False)["id"]

    async def story() -> None:
        async with enter(server, server.tokens["operator"], "planner") as planner:
            await planner.use("start_planning", task_id=plan)
            roof = {"task_id": plan, "title": "roof", "key": "shed-roof"}
            made = await planner.use("add_child", **roof)
            await planner.use("add_child", task_id=plan, title="walls", key="shed-walls")
            again = await planner.use("add_child", **roof)
            assert (made["created"], again["created"]) == (True, False)
            assert (again["id"], again["key"]) == (made["id"], "shed-roof")
            other = await planner.refused("add_child", **roof, payload={"tiles": 7})
            assert other.startswith("key_conflict: ")
            renamed = {"task_id": plan, "title": "roofing", "key": "shed-roof"}
            assert (await planner.use("add_child", **renamed))["title"] == "roof"
            job = {"title": "tile", "payload": {"tiles": 7}, "key": "tile"}
            made_job = await planner.use("create_task", **job)
            told = await planner.refused("create_task", **{**job, "payload": {"tiles": 8}})
            assert "whose argument differs: tiles" in told
            again = await planner.use("create_task", **{**job, "priority": 3, "title": "other"})
            assert (again["id"], again["created"]) == (made_job["id"], False)
            await planner.use("finalize_plan", task_id=plan)
            assert (await planner.use("add_child", **roof))["id"] == made["id"]

    asyncio.run(asyncio.wait_for(story(), 60))
    parts = engine_of(server.hf).tasks.children(plan)
    assert [each.title for each in parts] == ["roof", "walls"]


def test_an_agent_links_tasks_and_may_ask_for_what_is_so_already(quick_server: Served) -> None:
    server = quick_server
    first, second = server.add("first")["id"], server.add("second")["id"]

    async def story() -> None:
        async with enter(server, server.tokens["operator"], "planner") as planner:
            link = {"task_id": second, "needs": [first]}
            assert (await planner.use("block_task", **link))["task"]["blocked_by"] == [first]
            circle = await planner.refused("block_task", task_id=first, needs=[second])
            assert circle.startswith(f"invalid_input: needs: {first} would need itself through ")
            missing = await planner.refused("block_task", task_id=first, needs=["nonsense"])
            assert missing.startswith("invalid_input: needs: 'nonsense' is the key of no task; ")
            assert (await planner.use("block_task", **link))["repeated"]
            assert (await planner.use("unblock_task", **link))["task"]["blocked_by"] == []
            assert (await planner.use("unblock_task", **link))["repeated"]
            told = [(await planner.use("cancel_task", task_id=second)) for _ in range(2)]
            assert [each["repeated"] for each in told] == [False, True]
            ended = await planner.refused("unblock_task", task_id=second)
            assert ended.startswith("invalid_transition: ")
            assert "it has ended cancelled, and waits for nothing" in ended
        async with enter(server, server.tokens["worker"]) as worker:
            nobody = await worker.refused("claim", agents=[])
            assert nobody.startswith("invalid_input: agents: must name at least one")

    asyncio.run(asyncio.wait_for(story(), 60))


def test_an_agent_does_not_get_past_an_approval(quick_server: Served) -> None:
    server = quick_server
    text = "name: release\nsteps: [{id: approve, approval: 'Go?'}, {id: deploy, agent: writer}]\n"
    text += "agents: {writer: {external: true}}"
    yaml = {"Content-Type": "application/yaml"}
    server("admin").post("/workflows", content=text, headers=yaml).raise_for_status()
    run = server("operator").post("/runs", json={"workflow": "release"}).json()["id"]
    told = server("operator").get(f"/runs/{run}").json()["tasks"]
    approve, deploy = (each["id"] for each in told)

    async def story() -> None:
        async with enter(server, server.tokens["operator"], "planner") as planner:
            for needs in ({}, {"needs": [approve]}):
                kept = await planner.refused("unblock_task", task_id=deploy, **needs)
                assert f"its workflow has it wait for approve {approve}; approve(task" in kept
            assert (await planner.use("get_task", task_id=deploy))["blocked_by"] == [approve]

    asyncio.run(asyncio.wait_for(story(), 60))
    refused = server("operator").post(f"/tasks/{deploy}/unblock")
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    unknown = server("operator").post(f"/tasks/{deploy}/unblock", json={"needs": ["t_" + "0" * 20]})
    assert (unknown.status_code, unknown.json()["field"]) == (422, "needs")


def test_calls_at_once_are_each_made_in_the_name_of_who_makes_them(quick_server: Served) -> None:
    server = quick_server
    tokens = Tokens(engine_of(server.hf))
    names = [f"planner-{number}" for number in range(8)]
    secrets = {each: tokens.create(each, role="operator")["token"] for each in names}

    async def create(name: str) -> str:
        async with enter(server, secrets[name], "planner") as agent:
            return str((await agent.use("create_task", title=name))["id"])

    async def story() -> list[str]:
        return list(await asyncio.gather(*map(create, names)))

    made = asyncio.run(asyncio.wait_for(story(), 60))
    events = [server.hf.tasks.events(each)[0] for each in made]
    assert [each.actor for each in events] == names


def test_a_token_gets_no_tools_but_those_of_its_role(quick_server: Served) -> None:
    server = quick_server
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    allowed = {
        "viewer": {"viewer"},
        "operator": {"viewer", "planner", "operator"},
        "worker": {"worker"},
        "admin": {"viewer", "planner", "worker", "operator"},
    }
    for role, may in allowed.items():
        for chosen in ("viewer", "planner", "worker", "operator", "nonsense"):
            told = server(role).post(f"{server.url}/mcp?as={chosen}", json=call)
            assert told.status_code == (200 if chosen in may else 403), (role, chosen)
    made = server().post("/tokens", json={"name": "b", "role": "worker", "agents": ["builder"]})
    task = server.add(agent="builder")
    server.add(agent="default")

    async def story() -> None:
        async with enter(server, made.json()["token"]) as scoped:
            outside = await scoped.refused("claim", agents=["default"])
            assert (
                outside == "forbidden: this token is not for the agents default; it is for builder"
            )
            (got,) = (await scoped.use("claim"))["assignments"]
            assert got["task"]["id"] == task["id"]
            assert (await scoped.use("claim"))["assignments"] == []

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}])
def test_a_body_that_is_no_call_is_refused(quick_server: Served, version: dict[str, str]) -> None:
    server = quick_server
    json_type = {"Content-Type": "application/json", **version}
    for body in (b"{", b"[" * 100_000, b"[]", b"1", b'{"jsonrpc": "2.0"}', b"\xff"):
        told = server("viewer").post(f"{server.url}/mcp", content=body, headers=json_type)
        assert told.status_code == 400, body[:20]
    told = server("viewer").post(f"{server.url}/mcp", content=b"{}")
    assert (told.status_code, told.json()["code"]) == (415, "unsupported_media_type")


def test_an_agent_waits_for_work_as_a_worker_does(quick_server: Served) -> None:
    server = quick_server
    gone = Tokens(engine_of(server.hf)).create("gone", role="worker", agents=["left"])["token"]

    async def story() -> None:
        async with enter(server, server.tokens["worker"]) as worker, enter(server, gone) as revoked:
            late = asyncio.ensure_future(worker.use("claim", wait_seconds=20))
            over = asyncio.ensure_future(revoked.refused("claim", wait_seconds=20))
            serving = server.application.server_state
            assert await asyncio.to_thread(eventually, lambda: serving.waiting == 2)
            server("admin").delete("/tokens/gone")
            left, task = server.add(agent="left"), server.add()
            (got,) = (await late)["assignments"]
            assert got["task"]["id"] == task["id"]
            assert (await over).startswith("forbidden: this token is good no longer")
            assert server.hf.tasks.get(left["id"]).status == "queued"
            assert (await worker.use("claim", wait_seconds=0.01))["assignments"] == []

    asyncio.run(asyncio.wait_for(story(), 60))


def test_an_agent_that_hangs_up_while_it_waits_is_given_nothing(quick_server: Served) -> None:
    server = quick_server
    call = {"name": "claim", "arguments": {"wait_seconds": 20}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with pytest.raises(httpx.ReadTimeout):
        server("worker").post(f"{server.url}/mcp", json=asked, timeout=0.5)
    assert eventually(lambda: server.application.server_state.waiting == 0)
    assert server.hf.tasks.get(server.add()["id"]).attempt == 0


def test_a_task_without_a_title_is_refused_wherever_it_is_made(quick_server: Served) -> None:
    server = quick_server
    for title in ("", "  \n"):
        told = server("operator").post("/tasks", json={"title": title})
        assert (told.status_code, told.json()["field"]) == (422, "title")
        task = server.add()
        edited = server("operator").patch(f"/tasks/{task['id']}", json={"title": title})
        assert (edited.status_code, edited.json()["field"]) == (422, "title")

    async def story() -> None:
        async with enter(server, server.tokens["operator"]) as planner:
            said = await planner.refused("create_task", title="")
            assert said == "invalid_input: title: is empty; say what is to be done"

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_part_is_only_added_to_a_plan(quick_server: Served) -> None:
    server = quick_server
    idle = server.add(enqueue=False)["id"]
    children = f"/tasks/{idle}/plan/children"
    for body in ({"title": "roof"}, {"tasks": [{"title": "roof"}]}):
        told = server("operator").post(children, json=body)
        assert (told.status_code, told.json()["code"]) == (409, "invalid_transition")
        assert f"{idle} is no plan" in told.json()["detail"]
    # Below any task there may be another that is no part of a plan.
    below = {"title": "roof", "parent": idle, "enqueue": False}
    assert server("operator").post("/tasks", json=below).status_code == 201

    async def story() -> None:
        async with enter(server, server.tokens["operator"], "planner") as planner:
            said = await planner.refused("add_child", task_id=idle, title="roof")
            assert said.startswith(f"invalid_transition: parent: {idle} is no plan")

    asyncio.run(asyncio.wait_for(story(), 60))


def test_tools_take_the_words_of_the_calls_over_http(quick_server: Served) -> None:
    server = quick_server
    above = server.add("shed", enqueue=False)["id"]

    async def story() -> None:
        async with (
            enter(server, server.tokens["operator"], "planner") as planner,
            enter(server, server.tokens["worker"], "worker") as worker,
        ):
            more = {"agent": "digger", "tags": ["deep"], "max_attempts": 1, "timeout": "5m"}
            made = await planner.use("create_task", title="dig", parent=above, max_lost=2, **more)
            assert (made["parent_id"], made["max_lost"], made["timeout"]) == (above, 2, 300)
            await planner.use("create_task", title="dig more", **more)
            wanted = {"title": "dig well", "priority": 3, "tags": ["deep", "wide"]}
            told = await planner.use(
                "update_task", task_id=made["id"], version=made["version"], **wanted
            )
            assert {name: told["task"][name] for name in wanted} == wanted
            stale = await planner.refused(
                "update_task", task_id=made["id"], version=made["version"], title="no"
            )
            assert stale.startswith("version_conflict")
            asked = {"worker": "mole", "agents": ["digger"], "max": 5, "lease_seconds": 60}
            none = await worker.use("claim", wait_seconds=0.01, tags=["wide"], **asked)
            assert none["assignments"] == []
            found = (await worker.use("claim", tags=["wide", "deep"], **asked))["assignments"]
            assert [each["task"]["title"] for each in found] == ["dig well", "dig more"]
            assert found[0]["task"]["lease"]["owner"] == "mole"
            held = {"task_id": made["id"], "token": found[0]["token"]}
            kept = await worker.use("renew", usage={"usd": 1}, lease_seconds=90, **held)
            assert kept["task"]["usage"] == {"usd": 1}
            done = await worker.use("complete", output=1, usage={"usd": 2}, **held)
            assert done["task"]["usage"] == {"usd": 2}
            other = {"task_id": found[1]["task"]["id"], "token": found[1]["token"]}
            failed = await worker.use("fail", error="rock", usage={"usd": 3}, **other)
            assert (failed["task"]["status"], failed["task"]["usage"]) == ("failed", {"usd": 3})

    asyncio.run(asyncio.wait_for(story(), 60))


def test_an_argument_that_a_tool_does_not_have_is_refused_with_a_hint(quick_server: Served) -> None:
    server = quick_server

    async def story() -> None:
        async with enter(server, server.tokens["operator"], "planner") as planner:
            listed = (await planner.client.list_tools()).tools
            assert {each.input_schema["additionalProperties"] for each in listed} == {False}
            for wrong, hint in {
                "idle": "idle: is no field of this; `enqueue: false` keeps it idle",
                "agnet": "agnet: is no field of this; did you mean 'agent'?",
                "depends_on": "depends_on: is no field of this; it is called 'needs'",
            }.items():
                said = await planner.refused("create_task", title="roof", **{wrong: True})
                assert said.startswith(f"invalid_input: {hint} (create_task takes title, agent, ")
            assert (await planner.use("list_tasks"))["items"] == []

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_refusal_names_its_code_once_and_the_task_that_it_is_about(quick_server: Served) -> None:
    server = quick_server
    task = server.add()["id"]

    async def story() -> None:
        async with enter(server, server.tokens["operator"]) as operator:
            said = await operator.refused("retry", task_id=task)
            assert said == f"invalid_transition: {task}: it has not failed; it is queued"

    asyncio.run(asyncio.wait_for(story(), 60))
