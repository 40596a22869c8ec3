"""MCP tools that plan anew and steer, and what a refusal or `why` tells an agent to call."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.server.application import TABLES
from holdfast.server.routes.tasks import plan_table, table
from tests.contract.server.local_server import Served
from tests.contract.server.routes.test_mcp_tools import enter
from tests.mcp_agents import TOOLS, Agent

# What a call over HTTP is called as a tool, where HTTP has the word of its method instead.
METHODS = {
    ("POST", "/tasks"): "create_task",
    ("GET", "/tasks"): "list_tasks",
    ("GET", "/tasks/{task_id}"): "get_task",
    ("PATCH", "/tasks/{task_id}"): "update_task",
    ("DELETE", "/tasks/{task_id}"): "delete_task",
    ("POST", "/tasks/{task_id}/cancel"): "cancel_task",
    ("POST", "/tasks/{task_id}/block"): "block_task",
    ("POST", "/tasks/{task_id}/unblock"): "unblock_task",
    ("POST", "/tasks/{task_id}/plan/start"): "start_planning",
    ("POST", "/tasks/{task_id}/plan/children"): "add_child",
    ("PATCH", "/tasks/{task_id}/plan/children"): "reorder",
    ("POST", "/tasks/{task_id}/plan/finalize"): "finalize_plan",
}
# What get_task holds as well, and what an agent has no use for.
READ_WITH_TASK = {"attempts", "events", "effects"}


def play(server: Served, story: Callable[[Agent], Awaitable[None]], role: str = "operator") -> None:
    async def enter_and_play() -> None:
        async with enter(server, server.tokens["operator"], role) as agent:
            await story(agent)

    asyncio.run(asyncio.wait_for(enter_and_play(), 60))


def test_whatever_http_does_to_a_task_a_tool_of_the_same_word_does(quick_server: Served) -> None:
    assert table in TABLES
    calls = {
        (each.method, each.path.removeprefix("/api/v1"))
        for each in (*table.entries, *plan_table.entries)
    }
    assert len(calls) > 20
    words = {
        METHODS.get((method, path)) or path.rpartition("/")[2].replace("-", "_")
        for method, path in calls
    }
    assert words - READ_WITH_TASK <= TOOLS["operator"]
    assert quick_server.add()["status"] == "queued"


def test_a_planner_takes_back_what_it_planned_and_plans_anew(server: Served) -> None:
    async def story(planner: Agent) -> None:
        plan = (await planner.use("create_task", title="shed", enqueue=False))["id"]
        await planner.use("start_planning", task_id=plan)
        roof = await planner.use("add_child", task_id=plan, title="roof", key="roof")
        walls = await planner.use("add_child", task_id=plan, title="walls", key="walls")
        spare = await planner.use("add_child", task_id=plan, title="spare")
        gone = await planner.use("delete_task", task_id=spare["id"])
        assert gone == {"ok": True, "repeated": False, "id": spare["id"]}
        await planner.use("reorder", task_id=plan, order=["walls", roof["id"]])
        await planner.use("finalize_plan", task_id=plan, graph={"roof": ["walls"], roof["id"]: []})
        known = await planner.use("get_task", task_id=roof["id"])
        assert known["blocked_by"] == [walls["id"]]
        busy = await planner.refused("reset", task_id=plan)
        assert f'cancel_task(task_id="{plan}") ends it, and then it can be reset' in busy
        await planner.use("cancel_task", task_id=plan)
        again = await planner.use("reset", task_id=plan)
        assert again["task"]["planning_phase"] == "active"
        await planner.use("finalize_plan", task_id=plan)
        first = await planner.use("get_task", task_id=walls["id"])
        assert (first["state"], first["blocked_by"]) == ("ready", [])

    play(server, story, "planner")


def test_a_part_with_needs_of_its_own_waits_for_exactly_these(server: Served) -> None:
    async def story(planner: Agent) -> None:
        plan = (await planner.use("create_task", title="shed", enqueue=False))["id"]
        await planner.use("start_planning", task_id=plan)
        ids: dict[str, str] = {}
        for name, needs in {
            "ground": None,
            "walls": None,
            "door": ["walls"],
            "path": ["ground"],
        }.items():
            made = await planner.use("add_child", task_id=plan, title=name, key=name, needs=needs)
            ids[name] = made["id"]
        last = await planner.use("add_child", task_id=plan, title="paint")
        wrong = await planner.refused("add_child", task_id=plan, title="roof", needs=["wals"])
        assert wrong.startswith("invalid_input: needs: 'wals' is the key of no task; ")
        await planner.use("finalize_plan", task_id=plan)

        async def waits(task: str) -> set[str]:
            known = await planner.use("get_task", task_id=task)
            return set(known.get("blocked_by", ()))

        assert await waits(ids["walls"]) == {ids["ground"]}
        assert await waits(ids["door"]) == {ids["walls"]}
        assert await waits(ids["path"]) == {ids["ground"]}
        assert await waits(last["id"]) == {ids["walls"], ids["door"], ids["path"]}

    play(server, story, "planner")


def test_an_operator_pauses_answers_and_continues(quick_server: Served) -> None:
    server = quick_server
    task = server.add("write", enqueue=False)["id"]

    def work(**report: Any) -> None:
        (got,) = server.claim()
        verb, body = next(iter(report.items()))
        held = {"token": got["token"], **body}
        told = server("worker").post(f"/claims/{task}/{verb}", json=held)
        assert told.status_code == 200, told.text

    async def story(operator: Agent) -> None:
        await operator.use("enqueue", task_id=task)
        paused = await operator.use("pause", task_id=task)
        assert paused["task"]["holds"] == ["paused"]
        held = await operator.use("why", task_id=task)
        assert held["fixes"] == [f'resume(task_id="{task}")']
        assert (await operator.use("resume", task_id=task))["task"]["state"] == "ready"
        await asyncio.to_thread(work, ask={"question": "Which?"})
        asks = await operator.use("why", task_id=task)
        assert asks["fixes"][0].startswith(f'answer(task_id="{task}", answer=')
        await operator.use("answer", task_id=task, answer="The blue one")
        known = await operator.use("run_now", task_id=task)
        assert known["task"]["state"] == "ready"
        await asyncio.to_thread(work, complete={"output": 1})
        done = await operator.refused("enqueue", task_id=task)
        assert f'reopen(task_id="{task}")' in done
        more = await operator.use("continue", task_id=task, message="In verse")
        assert more["task"]["status"] == "queued"
        await asyncio.to_thread(work, complete={"output": 2})
        await operator.use("reopen", task_id=task)
        both = await operator.refused("resume", agent="writer", task_id=task)
        assert both.startswith("invalid_input: agent: is for all of that agent")
        assert (await operator.use("resume", agent="writer"))["repeated"]
        sent = await operator.use("signal", task_id=task, name="go", payload={"at": "noon"})
        assert sent["waited_for"] is False
        assert (await operator.use("list_workers"))["items"]

    play(server, story)


def test_no_refusal_and_no_why_names_a_command_of_a_shell(quick_server: Served) -> None:
    server = quick_server
    ready = server.add("ready")["id"]
    idle = server.add("idle", enqueue=False)["id"]

    async def story(operator: Agent) -> None:
        said: list[str] = [
            await operator.refused("finalize_plan", task_id=ready),
            await operator.refused("claim"),
            await operator.refused("start_run", workflow="unknown"),
            await operator.refused("get_run", run_id="@last"),
            await operator.refused("answer", task_id=ready, answer="yes"),
            await operator.refused("add_child", task_id=idle, title="part"),
        ]
        said += [str(await operator.use("why", task_id=each)) for each in (ready, idle)]
        assert not [each for each in said if re.search(r"holdfast (?!mcp)|--", each)]
        assert f'start_planning(task_id="{idle}") begins one' in said[5]
        assert 'claim(agents=["default"])' in said[6]
        assert f'enqueue(task_id="{idle}")' in said[7]

    play(server, story)


def test_a_planner_adds_a_part_that_is_a_run_of_a_workflow(quick_server: Served) -> None:
    server = quick_server
    text = "name: letters\ninput: {to: string}\nagents: {writer: {external: true}}\n"
    text += "steps: [{id: write, agent: writer}]"
    yaml = {"Content-Type": "application/yaml"}
    server().post("/workflows", content=text, headers=yaml).raise_for_status()

    async def story(planner: Agent) -> None:
        plan = (await planner.use("create_task", title="post", enqueue=False))["id"]
        await planner.use("start_planning", task_id=plan)
        call = {"task_id": plan, "title": "letter", "workflow": "letters"}
        wrong = await planner.refused("add_child", **call, input={"for": "Ada"})
        assert wrong.startswith("invalid_input: input")
        unknown = await planner.refused("add_child", **call | {"workflow": "leters"})
        assert unknown.startswith("not_found: ")
        both = await planner.refused("add_child", **call, prompt="x", input={"to": "Ada"})
        assert both.startswith("invalid_input: prompt: is not for a task that is a run")
        part = (await planner.use("add_child", **call, input={"to": "Bob"}))["id"]
        for change in ({"prompt": "x"}, {"payload": {"for": "Ada"}}, {"timeout": "5m"}):
            told = await planner.refused("update_task", task_id=part, **change)
            assert told.startswith("invalid_input: "), change
        await planner.use("update_task", task_id=part, payload={"to": "Ada"})
        await planner.use("finalize_plan", task_id=plan)
        run = (await planner.use("get_task", task_id=part))["waits_for"]
        assert (await planner.use("get_run", run_id=run))["input"] == {"to": "Ada"}

    play(server, story, "planner")
    body = {"title": "letter", "workflow": "letters", "input": {"to": "Ada"}}
    made = server("operator").post("/tasks", json=body)
    assert (made.status_code, made.json()["calls"]) == (201, "letters")
    (got,) = server.claim(agents=["writer"])
    child = {"token": got["token"], "tasks": [body]}
    told = server("worker").post(f"/claims/{got['task']['id']}/children", json=child)
    assert (told.status_code, told.json()["field"]) == (422, "workflow")


def test_an_agent_is_told_what_a_call_would_change_before_it_makes_it(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    flow = "name: letters\nsteps: [{id: write, agent: writer}]\nagents: {writer: {external: true}}"
    server().post("/workflows", content=flow, headers={"Content-Type": "application/yaml"})

    async def story(operator: Agent) -> None:
        made = await operator.use("start_run", workflow="letters", labels={"customer": 7})
        run = made["id"]
        caplog.clear()
        for tool, becomes in (("cancel_run", "cancelled"), ("pause", "held")):
            told = await operator.use(tool, run_id=run, dry_run=True)
            assert [each["becomes"] for each in told["tasks"]] == [becomes]
            assert told["dry_run"]
        told = await operator.use("resume", agent="writer", dry_run=True)
        assert (told["agent"], told["tasks"]) == ("writer", [])
        assert caplog.messages == []
        await operator.use("pause", run_id=run)
        told = await operator.use("resume", run_id=run, dry_run=True)
        assert [each["becomes"] for each in told["tasks"]] == ["ready"]
        assert (await operator.use("get_run", run_id=run))["holds"] == ["paused"]
        await operator.use("resume", run_id=run)
        found = await operator.use("list_runs", labels={"customer": "7"}, since="1h")
        assert [each["status"] for each in found["items"]] == ["running"]
        await operator.use("cancel_run", run_id=run)
        told = await operator.use("retry", run_id=run, dry_run=True)
        assert [each["becomes"] for each in told["tasks"]] == ["ready"]
        assert (await operator.use("get_run", run_id=run))["status"] == "cancelled"

    with caplog.at_level(logging.INFO, "holdfast.audit"):
        play(server, story)
