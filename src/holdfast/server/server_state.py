"""Server state: the objects that a server keeps while it serves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from anyio.to_thread import run_sync

from holdfast.server.auth.audit_throttle import AuditThrottle
from holdfast.server.auth.known_tokens import KnownTokens
from holdfast.server.event_stream import EventHub
from holdfast.server.open_calls import OpenCalls
from holdfast.service.admin.metrics import Meter
from holdfast.service.async_service import AsyncService, SharedTaskReads
from holdfast.service.commands.bulk_changes import BulkRegistry
from holdfast.service.protocol.end_watches import EndWatches
from holdfast.service.protocol.long_polls import LongPolls
from holdfast.service.protocol.remote_presence import RemotePresence
from holdfast.service.service import Service
from holdfast.settings import MEBIBYTE

if TYPE_CHECKING:
    from holdfast.mcp.endpoint import McpEndpoint

T = TypeVar("T")
MAX_THREADS = 40


@dataclass(kw_only=True)
class ServerState:
    """The state begins on the loop of the server, and ends there before connections are closed."""

    service: Service
    closing: bool = False
    bulk_changes: BulkRegistry = field(default_factory=BulkRegistry)
    refused: Counter[str] = field(default_factory=Counter)
    remote_presence: RemotePresence = field(init=False)
    meter: Meter = field(init=False)
    tokens: KnownTokens = field(init=False)
    audit_throttle: AuditThrottle = field(init=False)
    threads: ThreadPoolExecutor = field(init=False)
    shared_reads: SharedTaskReads = field(init=False)
    async_service: AsyncService = field(init=False)
    _long_polls: LongPolls | None = None
    _end_watches: EndWatches | None = None
    _event_hub: EventHub | None = None
    _open_calls: OpenCalls | None = None
    _tools: McpEndpoint | None = None
    _audit_reports: asyncio.Task[None] | None = None
    max_body: int = 16 * MEBIBYTE
    max_streams: int = 100

    def __post_init__(self) -> None:
        self.remote_presence = self.service.remote_presence()
        self.meter = self.service.meter()
        self.tokens = KnownTokens(self.service)
        self.audit_throttle = AuditThrottle(self.service.clock.monotonic)
        self.threads = ThreadPoolExecutor(MAX_THREADS, "holdfast-call")
        self.shared_reads = SharedTaskReads(self.service.queries, self.in_thread)
        self.async_service = AsyncService(self.service, self.shared_reads)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work that waits for the store in a thread, in the context of the caller."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, copy_context().run, work)

    @property
    def long_polls(self) -> LongPolls:
        if self._long_polls is None:
            self._long_polls = self.service.long_polls()
        return self._long_polls

    @property
    def end_watches(self) -> EndWatches:
        if self._end_watches is None:
            self._end_watches = self.service.end_watches()
        return self._end_watches

    @property
    def waiting(self) -> int:
        """How many long polls wait for work."""
        return 0 if self._long_polls is None else self._long_polls.waiting

    @property
    def event_hub(self) -> EventHub:
        if self._event_hub is None:
            self._event_hub = EventHub(self.service, self.open_calls)
        return self._event_hub

    @property
    def open_calls(self) -> OpenCalls:
        if self._open_calls is None:
            self._open_calls = OpenCalls(self.service)
        return self._open_calls

    @property
    def readers(self) -> int:
        """How many callers read the stream of events."""
        return 0 if self._event_hub is None else self._event_hub.readers

    async def tools(self) -> McpEndpoint:
        """The MCP endpoint; its modules take a second to load, at the first call."""
        await run_sync(import_module, "holdfast.mcp.endpoint")
        if self._tools is None:
            from holdfast.mcp.endpoint import McpEndpoint  # noqa: PLC0415 - see above

            self._tools = McpEndpoint(self.max_body)
        return self._tools

    def begin(self) -> None:
        """Start background tasks; call it on the loop of the server, before the first request."""
        self._audit_reports = asyncio.get_running_loop().create_task(
            self.audit_throttle.report_periodically()
        )

    async def end(self) -> None:
        """Free threads and tools; call it when no request is under way any more."""
        self.threads.shutdown(wait=False)
        if self._tools is not None:
            await self._tools.close()

    def close(self) -> None:
        """Answer long polls and end streams, which would keep the server from stopping."""
        self.closing = True
        self.bulk_changes.close()
        self.tokens.close()
        self.audit_throttle.close()
        if self._audit_reports is not None:
            self._audit_reports.cancel()
        if self._long_polls is not None:
            self._long_polls.close()
        if self._end_watches is not None:
            self._end_watches.close()
        if self._event_hub is not None:
            self._event_hub.close()
        if self._open_calls is not None:
            self._open_calls.close()
