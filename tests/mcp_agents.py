"""Agents that use the tools by the official client, and the story that they play together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any

from mcp import Client

LOOKING = {"list_tasks", "get_task", "why", "logs", "list_workers", "list_runs", "get_run"}
PLANNING = {"create_task", "update_task", "cancel_task", "start_planning", "add_child"}
PLANNING |= {"reorder", "finalize_plan", "block_task", "unblock_task"}
PLANNING |= {"delete_task", "enqueue", "run_now", "reset"}
WORKING = {"claim", "renew", "guard", "complete", "fail", "release", "ask"}
OPERATING = {"start_run", "cancel_run", "retry", "approve", "reject", "reopen", "continue"}
OPERATING |= {"pause", "resume", "answer", "signal"}
TOOLS = {
    "planner": LOOKING | PLANNING,
    "worker": LOOKING | WORKING,
    "operator": LOOKING | PLANNING | OPERATING,
    "viewer": LOOKING,
}


class Agent:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> set[str]:
        return {each.name for each in (await self.client.list_tools()).tools}

    async def undescribed(self) -> list[str]:
        """Tools, and fields of them, that say too little of themselves."""
        listed = (await self.client.list_tools()).tools
        short = [each.name for each in listed if len(each.description or "") < 20]
        for each in listed:
            fields = each.input_schema.get("properties", {})
            short += [f"{each.name}.{name}" for name in fields if not fields[name]["description"]]
        return short

    async def use(self, name: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - JSON is any value
        answer = await self.client.call_tool(name, arguments)
        assert not answer.is_error, answer.content
        return answer.structured_content

    async def refused(self, name: str, /, **arguments: Any) -> str:
        answer = await self.client.call_tool(name, arguments)
        assert answer.is_error, answer.content
        return str(getattr(answer.content[0], "text", ""))

    async def read(self, address: str) -> str:
        (found,) = (await self.client.read_resource(address)).contents
        return str(getattr(found, "text", ""))


Enter = Callable[[str], AbstractAsyncContextManager[Agent]]


async def build_a_shed(enter: Enter, workers_tools: set[str]) -> str:
    """One plans, another works, a third looks at what came of it; the id of what was planned."""
    async with enter("planner") as planner:
        told = planner.client.server_info
        assert told is not None
        assert (told.name, told.version) == ("holdfast", version("holdfast"))
        assert await planner.tools() == TOOLS["planner"]
        assert await planner.undescribed() == []
        task = await planner.use("create_task", title="A shed", agent="builder", enqueue=False)
        await planner.use("start_planning", task_id=task["id"])
        parts = [
            (await planner.use("add_child", task_id=task["id"], title=title))["id"]
            for title in ("roof", "walls")
        ]
        await planner.use("reorder", task_id=task["id"], order=parts[::-1])
        await planner.use("finalize_plan", task_id=task["id"])
        assert (await planner.use("why", task_id=parts[0]))["id"] == parts[0]
        both = await planner.refused("why", task_id=parts[0], run_id="@last")
        assert both == "invalid_input: task_id: give either task_id or run_id, one of both"
        others = await planner.refused("claim")
        assert others.startswith("forbidden: claim is a tool of the role worker, ")
        mistyped = await planner.refused("get_tasks")
        assert mistyped == "not_found: there is no tool 'get_tasks'; did you mean get_task?"
        missing = await planner.refused("get_task", task_id="t_" + "0" * 20)
        assert missing.startswith("not_found: ")
        wrong = await planner.refused("get_task", task="t_1")
        assert wrong == (
            "invalid_input: task_id: is missing; task: is no field of this; "
            "did you mean 'task_id'? (get_task takes task_id)"
        )
    async with enter("worker") as worker:
        assert await worker.tools() == workers_tools
        assert await worker.undescribed() == []
        for title in ("walls", "roof"):
            wrong = await worker.refused("guard", task_id="nonsense", token="1.0")
            assert wrong.startswith("invalid_input: task_id: ")
            (got,) = (await worker.use("claim", agents=["builder"]))["assignments"]
            assert got["task"]["title"] == title
            held = {"task_id": got["task"]["id"], "token": got["token"]}
            await worker.use("guard", **held)
            await worker.use("renew", **held, progress="half")
            done = await worker.use("complete", **held, output={"built": title})
            assert done["task"]["status"] == "done"
            assert (await worker.refused("guard", **held)).startswith("already_terminal: ")
        idle = await worker.use("claim", agents=["builder"], wait_seconds=0.01)
        assert idle["assignments"] == []
    async with enter("operator") as operator:
        assert await operator.tools() == TOOLS["operator"]
        assert await operator.undescribed() == []
        whole = await operator.use("get_task", task_id=task["id"])
        assert whole["status"] == "done"
        for tool in ("approve", "get_task", "cancel_task", "why"):
            refused = await operator.refused(tool, task_id="nonsense")
            assert refused.startswith("invalid_input: task_id: 'nonsense' names no run or task; ")
        for tool in ("get_run", "cancel_run", "why"):
            refused = await operator.refused(tool, run_id=task["id"])
            assert refused.startswith(f"invalid_input: run_id: {task['id']} is a task, and a run ")
    return str(task["id"])
