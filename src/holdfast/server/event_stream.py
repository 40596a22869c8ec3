"""Event stream: new events for any number of readers, read once and rendered once for all."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.server.exception_handlers import Problem
from holdfast.server.open_calls import OpenCalls
from holdfast.service.queries.history import Cursor, EventWithCursor
from holdfast.service.service import Service

PAGE = 1_000
# Seconds between two reads, so that a busy store is read in pages and not event by event. Each
# reader adds to them, because sending to it takes time on the loop.
MIN_READ_INTERVAL = 0.05
READ_INTERVAL_PER_READER = 0.002
MAX_READ_INTERVAL = 1.0
# Bytes that may wait for one reader.
MAX_WAITING_BYTES = 1_048_576
KEEPALIVE_INTERVAL = 15.0
KEEPALIVE = b": still here\n\n"

log = logging.getLogger("holdfast.server")


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFrame:
    """One event as it is sent, and the run that it belongs to."""

    run_id: str | None
    text: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBatch:
    """The events of one read; `whole` is the text of all, and `end` the cursor behind them."""

    frames: tuple[EventFrame, ...]
    whole: bytes
    end: Cursor

    def of(self, run_id: str | None) -> bytes:
        if run_id is None:
            return self.whole
        return b"".join(each.text for each in self.frames if each.run_id == run_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamRequest:
    """The begin of a stream, the run it is limited to, and the digest of the caller's token."""

    after: Cursor | None
    run_id: str | None
    digest: str


class EventReader:
    """The events that wait for one reader; too many are dropped, and the reader is told."""

    def __init__(self, start: Cursor, run_id: str | None) -> None:
        self.start = start
        self._run_id = run_id
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._read = start
        self._missed: Cursor | None = None
        self.come = asyncio.Event()

    def queue_batch(self, batch: EventBatch) -> None:
        text = batch.of(self._run_id)
        if self._missed is None and self._bytes + len(text) <= MAX_WAITING_BYTES:
            if text:
                self._waiting.append(text)
                self._bytes += len(text)
            self._read = batch.end
        else:
            if self._missed is None:
                self._missed = self._read
            self._end = batch.end
        self.come.set()

    def take(self) -> bytes:
        """All that waits, and behind it a `gap` if the reader has missed something."""
        taken = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        if self._missed is not None:
            said = {"missed_after": str(self._missed), "go_on_after": str(self._end)}
            taken += _render_frame("gap", str(self._end), said)
            self._missed, self._read = None, self._end
        self.come.clear()
        return taken


class EventHub:
    """Reads the history after each commit; all its readers share what it finds."""

    def __init__(self, service: Service, calls: OpenCalls) -> None:
        self._poll = service.settings.poll
        self._history = service.history
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._readers: set[EventReader] = set()
        self._by_token: Counter[str] = Counter()
        self._cursor: Cursor | None = None
        self._hinted = asyncio.Event()
        self._closed = False
        self._beginning = asyncio.Lock()
        self._unsubscribe = service.on_change(self._hint)
        self._looking: asyncio.Task[None] | None = None

    @property
    def readers(self) -> int:
        return len(self._readers)

    @contextmanager
    def reserve_listener(self, token: str, most: int) -> Iterator[None]:
        """Count one stream of a token; raises `Problem` beyond the streams it may read at once."""
        if self._by_token[token] >= most:
            said = f"this token reads {most} streams, and may read no more at once"
            raise Problem(429, "too_many_streams", said)
        self._by_token[token] += 1
        try:
            yield
        finally:
            self._by_token[token] -= 1
            if not self._by_token[token]:
                del self._by_token[token]

    async def read(self, asked: StreamRequest) -> AsyncIterator[bytes]:
        """Events from a cursor or from now on, until the server stops or the token ends."""
        reader = await self._join(asked.run_id)
        try:
            with self._calls.open(asked.digest) as ended:
                ended.add_done_callback(lambda _: reader.come.set())
                async for text in self._read_texts(asked, reader):
                    if ended.done():
                        return
                    yield text
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        self._closed = True
        self._unsubscribe()
        if self._looking is not None:
            self._looking.cancel()
        for reader in self._readers:
            reader.come.set()

    async def _join(self, run_id: str | None) -> EventReader:
        async with self._beginning:
            if self._cursor is None or not self._readers:
                self._cursor = await anyio.to_thread.run_sync(self._history.latest_cursor)
            if self._looking is None:
                self._looking = self._loop.create_task(self._look())
        reader = EventReader(self._cursor, run_id)
        self._readers.add(reader)
        return reader

    async def _read_texts(self, asked: StreamRequest, reader: EventReader) -> AsyncIterator[bytes]:
        """The texts for one reader: its cursor, the events since its begin, and then new events."""
        after = asked.after
        # An id without an event: a reader that loses the stream before an event goes on there.
        yield f"id: {after or reader.start}\n\n".encode()
        if after is not None:
            async for text in self._catch_up(after, reader.start, asked.run_id):
                yield text
        while not self._closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.come.wait(), KEEPALIVE_INTERVAL)
            yield reader.take() or KEEPALIVE

    async def _catch_up(
        self, cursor: Cursor, start: Cursor, run_id: str | None
    ) -> AsyncIterator[bytes]:
        """The events between the cursor of a reader and `start`, from where it gets all events."""
        while not self._closed and (cursor.after < start.after or cursor.gaps):
            told = await anyio.to_thread.run_sync(self._history.events_after, cursor, PAGE)
            known = [each for each in told if start.holds(each.event["seq"])]
            if known:
                yield _make_batch(known, known[-1].cursor).of(run_id)
            if told:
                cursor = told[-1].cursor
            if cursor.after < start.after:
                if not told:
                    # A cursor can hold no more gaps: the transactions under way have to end first.
                    await asyncio.sleep(self._poll)
                    yield KEEPALIVE
            elif len(told) < PAGE or told[-1].event["seq"] >= start.after:
                return

    async def _look(self) -> None:
        while not self._closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hinted.wait(), self._poll)
            self._hinted.clear()
            try:
                await self._look_once()
            except HoldfastError as error:
                log.warning("the history cannot be read: %s", error)
            except Exception:
                # Every reader waits for this task, and its error would be lost.
                log.exception("the history cannot be read")
            await asyncio.sleep(
                min(
                    MAX_READ_INTERVAL,
                    max(MIN_READ_INTERVAL, READ_INTERVAL_PER_READER * len(self._readers)),
                )
            )

    async def _look_once(self) -> None:
        found = PAGE
        while found == PAGE and self._cursor is not None and self._readers:
            cursor = self._cursor
            told = await anyio.to_thread.run_sync(self._history.events_after, cursor, PAGE)
            found = len(told)
            # A reader that came meanwhile, as the only one, has set a later cursor.
            if told and cursor is self._cursor:
                self._cursor = told[-1].cursor
                batch = _make_batch(told, self._cursor)
                for reader in self._readers:
                    reader.queue_batch(batch)

    def _hint(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hinted.set)


def _make_batch(told: Iterable[EventWithCursor], end: Cursor) -> EventBatch:
    frames = tuple(
        EventFrame(
            run_id=each.event.get("run_id"),
            text=_render_frame("event", str(each.cursor), each.event),
        )
        for each in told
    )
    return EventBatch(frames=frames, whole=b"".join(each.text for each in frames), end=end)


def _render_frame(kind: str, identifier: str, said: object) -> bytes:
    text = json.dumps(said, separators=(",", ":"))
    return f"id: {identifier}\nevent: {kind}\ndata: {text}\n\n".encode()
