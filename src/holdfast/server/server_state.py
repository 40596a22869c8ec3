"""What one server has open as long as it serves: the service, the waiting room, the stream."""

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

from holdfast.server.auth.audit_throttle import Strangers
from holdfast.server.auth.known_tokens import KnownTokens
from holdfast.server.event_stream import Hub
from holdfast.server.open_calls import OpenCalls
from holdfast.service.admin.metrics import Meter
from holdfast.service.async_service import AsyncService, SharedTaskReads
from holdfast.service.protocol.long_polls import LongPolls
from holdfast.service.protocol.remote_presence import RemotePresence
from holdfast.service.service import Service
from holdfast.settings import MEBIBYTE

if TYPE_CHECKING:
    from holdfast.mcp.endpoint import Endpoint

T = TypeVar("T")
THREADS = 40


@dataclass(kw_only=True)
class Serving:
    """Begun on the loop of the server, and ended there before it closes its connections."""

    service: Service
    closing: bool = False
    refused: Counter[str] = field(default_factory=Counter)
    visitors: RemotePresence = field(init=False)
    meter: Meter = field(init=False)
    tokens: KnownTokens = field(init=False)
    strangers: Strangers = field(init=False)
    threads: ThreadPoolExecutor = field(init=False)
    looks: SharedTaskReads = field(init=False)
    swift: AsyncService = field(init=False)
    _room: LongPolls | None = None
    _hub: Hub | None = None
    _open_calls: OpenCalls | None = None
    _tools: Endpoint | None = None
    _telling: asyncio.Task[None] | None = None
    max_body: int = 16 * MEBIBYTE
    max_streams: int = 100

    def __post_init__(self) -> None:
        self.visitors = self.service.remote_presence()
        self.meter = self.service.meter()
        self.tokens = KnownTokens(self.service)
        self.strangers = Strangers(self.service.clock.monotonic)
        self.threads = ThreadPoolExecutor(THREADS, "holdfast-call")
        self.looks = SharedTaskReads(self.service.queries, self.in_thread)
        self.swift = AsyncService(self.service, self.looks)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Have a thread do what waits for the store, in the context of whoever asks."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, copy_context().run, work)

    @property
    def room(self) -> LongPolls:
        if self._room is None:
            self._room = self.service.long_polls()
        return self._room

    @property
    def waiting(self) -> int:
        """How many long polls wait for work."""
        return 0 if self._room is None else self._room.waiting

    @property
    def hub(self) -> Hub:
        if self._hub is None:
            self._hub = Hub(self.service, self.open_calls)
        return self._hub

    @property
    def open_calls(self) -> OpenCalls:
        if self._open_calls is None:
            self._open_calls = OpenCalls(self.service)
        return self._open_calls

    @property
    def readers(self) -> int:
        """How many read events as they come."""
        return 0 if self._hub is None else self._hub.readers

    async def tools(self) -> Endpoint:
        """The tools of agents; what they need takes a second to load, when the first comes."""
        await run_sync(import_module, "holdfast.mcp.endpoint")
        if self._tools is None:
            from holdfast.mcp.endpoint import Endpoint  # noqa: PLC0415 - see above

            self._tools = Endpoint(self.max_body)
        return self._tools

    def begin(self) -> None:
        """To be called on the loop that serves, before anything is under way."""
        self._telling = asyncio.get_running_loop().create_task(self.strangers.keep_telling())

    async def end(self) -> None:
        """To be called when nothing is under way any more."""
        self.threads.shutdown(wait=False)
        if self._tools is not None:
            await self._tools.close()

    def close(self) -> None:
        """Answer who waits, and end the streams: they hold up whoever wants to stop."""
        self.closing = True
        self.tokens.close()
        self.strangers.close()
        if self._telling is not None:
            self._telling.cancel()
        if self._room is not None:
            self._room.close()
        if self._hub is not None:
            self._hub.close()
        if self._open_calls is not None:
            self._open_calls.close()
