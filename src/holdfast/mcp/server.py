"""Puts the tools of a role together: who plans, who works, and who steers have each their own."""

from __future__ import annotations

from enum import StrEnum

from mcp.server.mcpserver import MCPServer

from holdfast.mcp.looking import Looking, Runs
from holdfast.mcp.operating import Operating
from holdfast.mcp.planning import Planning
from holdfast.mcp.toolbox import Toolbox
from holdfast.mcp.working import Working
from holdfast.service.service import Service

INSTRUCTIONS = """\
Holdfast keeps tasks that run in their order and never twice. Ids are t_… of tasks, r_… of runs.
An error begins with a code that does not change, as `stale_token`, and says what to do.
"""
_SAID = {
    "planner": "Plan: create_task with enqueue false, start_planning, add_child, finalize_plan.",
    "worker": "Work: claim, guard before side effects, renew while at it, then complete or fail.",
    "operator": "Steer: start_run, get_run, why; approve or reject what waits for a person.",
}


class As(StrEnum):
    """Who uses the tools; nobody has both those that work and those that judge work."""

    PLANNER = "planner"
    WORKER = "worker"
    OPERATOR = "operator"


def make_server(service: Service, role: As, worker: str) -> MCPServer:
    server = MCPServer("holdfast", instructions=f"{INSTRUCTIONS}{_SAID[role]}")
    for box in _boxes(service, role, worker):
        for tool in box.tools():
            server.tool(description=_describe(tool.__doc__))(tool)
    return server


def _boxes(service: Service, role: As, worker: str) -> list[Toolbox]:
    looking: list[Toolbox] = [Looking(service), Runs(service)]
    match role:
        case As.PLANNER:
            return [*looking, Planning(service)]
        case As.WORKER:
            return [*looking, Working(service, worker)]
        case As.OPERATOR:
            return [*looking, Planning(service), Operating(service)]


def _describe(text: str | None) -> str:
    """A docstring as one reads it: without the blanks before its lines."""
    return "\n".join(line.strip() for line in (text or "").strip().splitlines())
