"""The MCP server as agents use it: the official client, over the pipes of a real process."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from holdfast import Holdfast
from tests.acceptance.terminals import PROGRAM, ROOT, environment, holdfast

LOOKING = {"list_tasks", "get_task", "why", "logs", "list_runs", "get_run"}
PLANNING = {"create_task", "update_task", "cancel_task", "start_planning", "add_child"}
PLANNING |= {"reorder", "finalize_plan"}
WORKING = {"claim", "renew", "guard", "complete", "fail", "release", "ask"}
OPERATING = {"start_run", "cancel_run", "retry", "approve", "reject"}
TOOLS = {
    "planner": LOOKING | PLANNING,
    "worker": LOOKING | WORKING,
    "operator": LOOKING | PLANNING | OPERATING,
}


class Agent:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> dict[str, str]:
        listed = await self._client.list_tools()
        return {each.name: each.description or "" for each in listed.tools}

    async def use(self, name: str, **arguments: Any) -> Any:  # noqa: ANN401 - JSON is any value
        answer = await self._client.call_tool(name, arguments)
        assert not answer.is_error, answer.content
        return answer.structured_content

    async def refused(self, name: str, **arguments: Any) -> str:
        answer = await self._client.call_tool(name, arguments)
        assert answer.is_error, answer.content
        return str(getattr(answer.content[0], "text", ""))


@asynccontextmanager
async def agent(folder: Path, role: str) -> AsyncIterator[Agent]:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, "mcp", "--as", role],
        env=environment(),
        cwd=folder,
    )
    async with Client(started) as client:
        yield Agent(client)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))


def test_an_agent_plans_another_works_and_a_third_judges(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")

    async def story() -> None:
        async with agent(tmp_path, "planner") as planner:
            told = await planner.tools()
            assert set(told) == TOOLS["planner"]
            assert [name for name, said in told.items() if len(said) < 20] == []
            task = await planner.use("create_task", title="A shed", agent="builder", enqueue=False)
            await planner.use("start_planning", task_id=task["id"])
            parts = [
                (await planner.use("add_child", parent_id=task["id"], title=title))["id"]
                for title in ("roof", "walls")
            ]
            await planner.use("reorder", parent_id=task["id"], order=parts[::-1])
            await planner.use("finalize_plan", parent_id=task["id"])
            assert "not_found" in await planner.refused("get_task", task_id="t_" + "0" * 20)
        async with agent(tmp_path, "worker") as worker:
            assert set(await worker.tools()) == TOOLS["worker"]
            for title in ("walls", "roof"):
                (got,) = (await worker.use("claim", agents=["builder"]))["assignments"]
                assert got["task"]["title"] == title
                held = {"task_id": got["task"]["id"], "token": got["token"]}
                await worker.use("guard", **held)
                await worker.use("renew", **held, progress="half")
                done = await worker.use("complete", **held, output={"built": title})
                assert done["task"]["status"] == "done"
                assert "already_terminal" in await worker.refused("guard", **held)
            assert (await worker.use("claim", agents=["builder"]))["assignments"] == []
        async with agent(tmp_path, "operator") as operator:
            assert set(await operator.tools()) == TOOLS["operator"]
            whole = await operator.use("get_task", task_id=task["id"])
            assert whole["status"] == "done"
            assert "invalid_input" in await operator.refused("approve", identifier="nonsense")

    run(story())
    with Holdfast(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as hf:
        actors = {each.actor for task in hf.tasks.list() for each in hf.tasks.events(task.id)}
        assert any(each.endswith(":planner") for each in actors)
        assert hf.doctor().ok


def test_the_page_tells_the_tools_of_each_role_and_how_a_client_starts_them() -> None:
    page = (ROOT / "docs" / "how-to" / "mcp.md").read_text(encoding="utf-8")
    rows = {
        row[0].strip("` "): set(re.findall(r"`(\w+)`", row[1]))
        for row in re.findall(r"^\| (.*?) \| (.*?) \|$", page, re.MULTILINE)[1:]
    }
    assert rows["planner"] | rows["each"] == TOOLS["planner"]
    assert rows["worker"] | rows["each"] == TOOLS["worker"]
    assert rows["operator"] | rows["planner"] | rows["each"] == TOOLS["operator"]
    (text,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    told = json.loads(text)["mcpServers"]["holdfast"]
    assert (told["command"], told["args"]) == ("holdfast", ["mcp", "--as", "planner"])
