"""MCP route: the tools of a token's role, over streamable HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.model.task import Assignment
from holdfast.model.token import Role
from holdfast.server.exception_handlers import JSON, Problem, refuse_content_type
from holdfast.server.long_polls import REVOKED, is_gone, wait_for_work
from holdfast.server.request_context import Context, RequestContext
from holdfast.server.route_table import ALL_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas.responses import PROBLEMS, JsonRpcResponse
from holdfast.service.commands.token_scope import Forbidden
from holdfast.service.protocol.long_polls import ClaimOptions
from holdfast.service.protocol.protocol import ClaimTerms

if TYPE_CHECKING:
    from holdfast.mcp.endpoint import McpEndpoint

table = RouteTable(tag="mcp", prefix="")
# The first role counts for a caller that names none.
_ROLES_OF_TOKEN = {
    Role.VIEWER: ("viewer",),
    Role.OPERATOR: ("operator", "planner", "viewer"),
    Role.WORKER: ("worker",),
    Role.ADMIN: ("operator", "planner", "worker", "viewer"),
}
_EXAMPLE_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
_CALL_BODY = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": {"type": "object"}, "example": _EXAMPLE_CALL}},
    }
}


def _allow_either_problem(status: int) -> dict[str, Any]:
    """Refused by this server, or by the protocol in its own words."""
    told = PROBLEMS[status]
    return {**told, "content": {**told["content"], JSON: {"schema": {"type": "object"}}}}


class McpResponse(Response):
    """What the protocol answers, which writes it by itself."""

    media_type = JSON

    def __init__(self, endpoint: McpEndpoint, context: RequestContext, role: str) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._context = context
        self._role = role

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Imported at the first call: the import takes long, and few servers need it.
        from holdfast.mcp.server import ToolRole  # noqa: PLC0415 - the same
        from holdfast.mcp.tools import ToolCaller  # noqa: PLC0415 - see above

        access = self._context.access

        async def wait(offer: ClaimTerms, ask: ClaimOptions, seconds: float) -> list[Assignment]:
            waiter = self._context.server_state.long_polls.make_long_poll(offer, ask)
            found = await wait_for_work(
                self._context.server_state, waiter, seconds, (scope, receive)
            )
            if found is None:
                raise Forbidden(REVOKED)
            return found

        caller = ToolCaller(
            service=self._context.service,
            worker=access.name,
            access=access,
            wait=wait,
            is_gone=lambda: is_gone((scope, receive)),
        )
        kind = (ToolRole(self._role), access.role in VIEWER_ROLES)
        await self._endpoint.answer((scope, receive, send), kind, caller)


@table.route(
    "POST",
    "/mcp",
    ALL_ROLES,
    answers=JsonRpcResponse,
    also={
        202: {"description": "A notification, which needs no answer"},
        400: _allow_either_problem(400),
        404: _allow_either_problem(404),
        406: {"description": "Accept `application/json, text/event-stream`"},
    },
    extra=_CALL_BODY,
)
async def speak(
    request: Request,
    context: Context,
    role: Annotated[
        str | None, Query(alias="as", description="planner, worker, operator or viewer")
    ] = None,
) -> Response:
    """Use the tools of a role over MCP; without `as`, those of what the token may do."""
    may = _ROLES_OF_TOKEN[context.access.role]
    if role is not None and role not in may:
        path = f"ask at /mcp?as={may[0]}"
        raise Problem(403, "forbidden", f"this token may use MCP as {', '.join(may)}: {path}")
    if not request.headers.get("content-type", "").lower().startswith(JSON):
        return refuse_content_type(request, JSON)
    return McpResponse(await context.server_state.tools(), context, role or may[0])
