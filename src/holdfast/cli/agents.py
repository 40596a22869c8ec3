"""Agents that use Holdfast by tools: the MCP server, over the pipes of whoever starts it."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from holdfast.cli.registry import command
from holdfast.cli.session import INSTALL_SERVER, actor, begun, of_attempt
from holdfast.errors import InvalidInput

ROLES = ("planner", "worker", "operator", "viewer")


@command("mcp", example="holdfast mcp --as worker")
def mcp(
    role: Annotated[
        str,
        typer.Option("--as", metavar="ROLE", help="The role: planner, worker, operator or viewer."),
    ] = "planner",
    name: Annotated[
        str | None, typer.Option("--worker", help="The name of the worker (default: HOST-mcp).")
    ] = None,
) -> None:
    """Serve MCP tools for a role on stdin/stdout."""
    from importlib.util import find_spec

    if role not in ROLES:
        raise InvalidInput("as", f"{role!r} is not one of {', '.join(ROLES)}")
    if not find_spec("mcp"):
        raise InvalidInput("mcp", "is not installed: " + INSTALL_SERVER)
    if role == "worker" and of_attempt():
        reason = (
            "would report past the worker of this command, which keeps its secrets out; "
            "use `holdfast work …`, `holdfast guard` or HTTP at HOLDFAST_SERVER instead"
        )
        raise InvalidInput("as", reason)
    from holdfast.mcp.server import As, make_server
    from holdfast.mcp.tools import Caller

    worker = name or f"{socket.gethostname().partition('.')[0]}-mcp"
    with begun() as service:
        service.actor = f"{actor()}:{role}"
        caller = Caller(service=service, worker=worker, wait=service.room.wait)
        make_server(lambda: caller, As(role)).run()
