"""MCP server: the tools of one role; planners, workers and operators each have their own."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, Resource
from pydantic import ValidationError

from holdfast.mcp.operator_tools import OperatorTools
from holdfast.mcp.planner_tools import PlannerTools
from holdfast.mcp.read_tools import ReadTools, RunTools
from holdfast.mcp.resources import JSON, Resources
from holdfast.mcp.tools import (
    FindCaller,
    Toolbox,
    describe_subject,
    describe_unknown_tool,
    make_error_result,
)
from holdfast.mcp.worker_tools import WorkerTools
from holdfast.service.admin.health import read_own_version
from holdfast.service.commands.request_errors import translate_errors

INSTRUCTIONS = """\
Holdfast keeps tasks, and runs them in their order and never twice. Ids are t_… of tasks, r_… of \
runs. A task is idle (not in the queue), queued, running, done, failed or cancelled; it starts \
when all that it needs is done, its time has come, nothing holds it, and a worker for its agent \
asks.
An error begins with a code that does not change, as `stale_token`, and says what to do. A call \
whose answer was lost may be made again: claim with the request_id that it had, what makes \
something new with its key, or after a look whether it is there.
"""
_INSTRUCTIONS_OF_ROLE = {
    "viewer": "Look: list_runs, get_run, list_tasks, get_task, logs; why tells what holds one up.",
    "planner": """\
Plan: create_task with enqueue false, start_planning, add_child for each part, reorder if need be, \
finalize_plan. Then the parts are worked on, in order; look with get_task. To plan anew: \
delete_task takes a part away, and cancel_task and reset take a finalized plan back to planning.""",
    "worker": """\
Work: claim a task with the agents you are, and keep its token. Do what its title and payload say. \
Call renew every few minutes, with your progress; guard before each side effect. End with complete \
and the output, fail with what went wrong, release, or ask a person. After stale_token, \
lease_expired, cancelled, already_claimed, already_passed or already_terminal stop at once: the \
task is yours no more.""",
    "operator": """\
Steer: start_run with a key, get_run, why; retry what failed, pause and resume, continue what \
ended with more to do. Approve, reject or answer what waits for a person only as the person says. \
Plan: create_task with enqueue false, start_planning, add_child, finalize_plan.""",
}


class ToolRole(StrEnum):
    """The role of a caller. No role has both tools that work and tools that judge work."""

    VIEWER = "viewer"
    PLANNER = "planner"
    WORKER = "worker"
    OPERATOR = "operator"


_TOOLS_OF_ROLE = {
    ToolRole.VIEWER: (*ReadTools.list_names(), *RunTools.list_names()),
    ToolRole.PLANNER: PlannerTools.list_names(),
    ToolRole.WORKER: WorkerTools.list_names(),
    ToolRole.OPERATOR: OperatorTools.list_names(),
}


class ToolServer(MCPServer):
    """A server that also lists the newest runs, each as a resource.

    A call of a tool that does not exist, or that another role has, is kept in the audit.
    """

    def __init__(
        self,
        instructions: str,
        find_caller: FindCaller,
        toolboxes: Sequence[Toolbox],
        resources: Resources | None,
    ) -> None:
        super().__init__(
            "holdfast",
            version=read_own_version(),
            instructions=instructions,
            tools=[tool for box in toolboxes for tool in box.make_tools()],
            subscriptions=False,
        )
        self._find_caller = find_caller
        self._run_resources = resources
        if resources is not None:
            resources.install(self)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            known = {tool.name: tool for tool in await self.list_tools()}
            tool = known.get(name)
            if tool is None:
                told = describe_unknown_tool(name, list(known), _TOOLS_OF_ROLE.items())
                self._note(name, told.partition(":")[0], arguments)
                return make_error_result(told)
            mistaken = error.__cause__ if isinstance(error.__cause__, ValidationError) else None
            if tool.annotations is None or not tool.annotations.read_only_hint:
                told = "internal_error" if mistaken is None else "invalid_input"
                self._note(name, told, arguments)
            if mistaken is None:
                raise
            fields = [*tool.input_schema.get("properties", {})]
            told = "; ".join(map(str, translate_errors(mistaken.errors(), fields)))
            return make_error_result(f"invalid_input: {told} ({name} takes {', '.join(fields)})")

    def _note(self, name: str, told: str, sent: dict[str, Any]) -> None:
        self._find_caller().note(name, told, describe_subject({}, sent))

    async def list_resources(self) -> list[Resource]:
        listed = await super().list_resources()
        if self._run_resources is None:
            return listed
        runs = await run_sync(self._run_resources.list_newest)
        return listed + [
            Resource(
                uri=f"holdfast://runs/{each['id']}",
                name=each["id"],
                title=f"{each['workflow']}, {each['status']}",
                mime_type=JSON,
            )
            for each in runs
        ]


def make_server(find_caller: FindCaller, role: ToolRole, *, looks: bool = True) -> ToolServer:
    """The server of a role; with `looks`, the caller may read tasks that it has not claimed."""
    resources = Resources(find_caller) if looks else None
    looking: list[Toolbox] = [ReadTools(find_caller), RunTools(find_caller)] if looks else []
    toolboxes = [*looking, *_make_toolboxes(find_caller, role)]
    instructions = f"{INSTRUCTIONS}{_INSTRUCTIONS_OF_ROLE[role]}"
    return ToolServer(instructions, find_caller, toolboxes, resources)


def _make_toolboxes(find_caller: FindCaller, role: ToolRole) -> list[Toolbox]:
    match role:
        case ToolRole.VIEWER:
            return []
        case ToolRole.PLANNER:
            return [PlannerTools(find_caller)]
        case ToolRole.WORKER:
            return [WorkerTools(find_caller)]
        case ToolRole.OPERATOR:
            return [PlannerTools(find_caller), OperatorTools(find_caller)]
