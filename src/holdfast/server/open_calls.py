"""Open calls: streams and long polls, which end when the token they were made with does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from anyio.to_thread import run_sync

from holdfast.errors import HoldfastError
from holdfast.service.service import Service

# Seconds after which revoked tokens are found without a hint.
CHECK_INTERVAL = 0.5
# The least time between two checks: on a busy store there is a hint with every call.
MIN_CHECK_INTERVAL = 0.1

log = logging.getLogger("holdfast.server")


class OpenCalls:
    """All open calls of a server; one read of the store checks all tokens. For one loop."""

    def __init__(self, service: Service) -> None:
        self._tokens = service.tokens
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, set[asyncio.Future[None]]] = {}
        self._hinted = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._leave = (
            service.on_change(self._hint),
            self._tokens.on_grant(self._on_grant),
        )

    @contextmanager
    def open(self, digest: str) -> Iterator[asyncio.Future[None]]:
        """Register a call by the digest of its token; the future is done when it has to end."""
        call: asyncio.Future[None] = self._loop.create_future()
        self._open.setdefault(digest, set()).add(call)
        if self._looking is None:
            self._looking = self._loop.create_task(self._look())
        try:
            yield call
        finally:
            calls = self._open[digest]
            calls.discard(call)
            if not calls:
                del self._open[digest]

    @property
    def ended(self) -> int:
        """How many calls are to end and have not ended yet."""
        return sum(call.done() for calls in [*self._open.values()] for call in [*calls])

    def close(self) -> None:
        for leave in self._leave:
            leave()
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        try:
            while self._open:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hinted.wait(), CHECK_INTERVAL)
                self._hinted.clear()
                try:
                    await self._look_once()
                except HoldfastError as error:
                    # A stream tells nothing meanwhile: its events are read from the same store.
                    log.warning("it cannot be seen which tokens are good: %s", error)
                except Exception:
                    # Every open call depends on this task.
                    log.exception("it cannot be seen which tokens are good")
                await asyncio.sleep(MIN_CHECK_INTERVAL)
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        digests = [*self._open]
        good = await run_sync(self._tokens.good_among, digests)
        for digest in {*digests} - good:
            for call in self._open.get(digest, ()):
                if not call.done():
                    call.set_result(None)

    def _on_grant(self, _: Sequence[str]) -> None:
        self._hint()

    def _hint(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hinted.set)
