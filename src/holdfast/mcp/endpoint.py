"""MCP endpoint: the tools over streamable HTTP, each call in the name of its caller."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from anyio.to_thread import run_sync
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from holdfast.mcp.server import ToolRole, make_server
from holdfast.mcp.tools import ToolCaller

_calling: ContextVar[ToolCaller] = ContextVar("calling")
ToolSet = tuple[ToolRole, bool]


class McpEndpoint:
    """The endpoint keeps no sessions, so any server may answer any call. It belongs to one loop."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._begun: dict[ToolSet, asyncio.Future[StreamableHTTPSessionManager]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def answer(
        self, request: tuple[Scope, Receive, Send], kind: ToolSet, who: ToolCaller
    ) -> None:
        manager = await self._manager(kind)
        token = _calling.set(who)
        try:
            await manager.handle_request(*request)
        finally:
            _calling.reset(token)

    async def close(self) -> None:
        """Stop the servers of all roles. A call that is still under way is cut off."""
        for each in self._running:
            each.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _manager(self, kind: ToolSet) -> StreamableHTTPSessionManager:
        if kind not in self._begun:
            self._begun[kind] = asyncio.get_running_loop().create_future()
            self._running.add(asyncio.create_task(self._run(kind)))
        return await asyncio.shield(self._begun[kind])

    async def _run(self, kind: ToolSet) -> None:
        begun = self._begun[kind]
        try:
            manager = await run_sync(self._make_manager, kind)
        except BaseException as error:
            del self._begun[kind]
            begun.set_exception(error)
            raise
        async with manager.run():
            begun.set_result(manager)
            await asyncio.Event().wait()

    def _make_manager(self, kind: ToolSet) -> StreamableHTTPSessionManager:
        role, looks = kind
        server = make_server(_calling.get, role, looks=looks)
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=self._max_body,
            # The gate has checked hosts and origins already.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        return server.session_manager
