"""Tools for agents: MCP over streamable HTTP, with the tools of what a token may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.model.task import Assignment
from holdfast.model.token import Role
from holdfast.server.long_polls import GONE, is_gone, wait_for_work
from holdfast.server.problems import JSON, Problem, not_json
from holdfast.server.request_context import AsksAs, Door
from holdfast.server.route_table import ANYONE, LOOKERS, Table
from holdfast.server.schemas.responses import PROBLEMS, Reply
from holdfast.service.commands.token_scope import Forbidden
from holdfast.service.protocol.long_polls import ClaimOptions
from holdfast.service.protocol.protocol import ClaimTerms

if TYPE_CHECKING:
    from holdfast.mcp.endpoint import Endpoint

table = Table(tag="mcp", prefix="")
# The first is what somebody is who does not say it.
_MAY = {
    Role.VIEWER: ("viewer",),
    Role.OPERATOR: ("operator", "planner", "viewer"),
    Role.WORKER: ("worker",),
    Role.ADMIN: ("operator", "planner", "worker", "viewer"),
}
_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
_SPOKEN = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": {"type": "object"}, "example": _CALL}},
    }
}


def _either(status: int) -> dict[str, Any]:
    """Refused by this server, or by the protocol in its own words."""
    told = PROBLEMS[status]
    return {**told, "content": {**told["content"], JSON: {"schema": {"type": "object"}}}}


class Spoken(Response):
    """What the protocol answers, which writes it by itself."""

    media_type = JSON

    def __init__(self, endpoint: Endpoint, door: Door, role: str) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._door = door
        self._role = role

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Later than the others: it takes long, and few need it.
        from holdfast.mcp.server import As  # noqa: PLC0415 - the same
        from holdfast.mcp.tools import Caller  # noqa: PLC0415 - see above

        access = self._door.access

        async def wait(offer: ClaimTerms, ask: ClaimOptions, seconds: float) -> list[Assignment]:
            waiter = self._door.serving.room.make_long_poll(offer, ask)
            found = await wait_for_work(self._door.serving, waiter, seconds, (scope, receive))
            if found is None:
                raise Forbidden(GONE)
            return found

        caller = Caller(
            service=self._door.service,
            worker=access.name,
            access=access,
            wait=wait,
            is_gone=lambda: is_gone((scope, receive)),
        )
        kind = (As(self._role), access.role in LOOKERS)
        await self._endpoint.answer((scope, receive, send), kind, caller)


@table.route(
    "POST",
    "/mcp",
    ANYONE,
    answers=Reply,
    also={
        202: {"description": "A notification, which needs no answer"},
        400: _either(400),
        404: _either(404),
        406: {"description": "Accept `application/json, text/event-stream`"},
    },
    extra=_SPOKEN,
)
async def speak(
    request: Request,
    asks: AsksAs,
    role: Annotated[
        str | None, Query(alias="as", description="planner, worker, operator or viewer")
    ] = None,
) -> Response:
    """Use the tools of a role over MCP; without `as`, those of what the token may do."""
    may = _MAY[asks.access.role]
    if role is not None and role not in may:
        path = f"ask at /mcp?as={may[0]}"
        raise Problem(403, "forbidden", f"this token may use MCP as {', '.join(may)}: {path}")
    if not request.headers.get("content-type", "").lower().startswith(JSON):
        return not_json(request, JSON)
    return Spoken(await asks.serving.tools(), asks, role or may[0])
