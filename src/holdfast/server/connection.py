"""Connection: HTTP as uvicorn speaks it, within limits of size and time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from math import inf
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from holdfast.server.buffered_transport import BufferedHttpProtocol
from holdfast.server.connection_limits import GRACE, Connections
from holdfast.server.exception_handlers import make_problem_answer
from holdfast.server.gate import ACCESS

# Bytes of a header beside its name and value.
HEADER_OVERHEAD = 4
# Seconds for which a refused client may still send, so that it can read the refusal.
LINGER = 1.0
NOT_HTTP = (400, "invalid_request", "this is no HTTP/1.1 request")


class RequestTooLarge(Exception):
    """Stops the parser where a request is too large."""


def render_problem(status: int, code: str, detail: str) -> bytes:
    """The bytes of a whole answer, for requests that do not reach the application."""
    answer = make_problem_answer(status, code, detail)
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()
    headers = [b": ".join(each) for each in (*answer.raw_headers, (b"connection", b"close"))]
    return b"\r\n".join([first, *headers, b"", bytes(answer.body)])


class Connection(BufferedHttpProtocol):
    """One connection; what the server waits for from its client has to come by the deadline."""

    def __init__(self, connections: Connections, address: str, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.address = address
        self._connections = connections
        self._limits = connections.limits
        self._most_head, self._most_fields = self._limits.head, self._limits.headers
        self._deadline = self.loop.time() + self._limits.head_time
        self._is_made = self._refused = False
        self._reason = NOT_HTTP
        # Whether a message has begun and not ended, and whether its headers are still coming.
        self._receives = self._in_head = False
        # Its bytes and headers so far; `_around` counts the bytes that are not body.
        self._head = self._fields = self._body = self._around = 0
        self._unsent, self._moved_at = 0, 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._is_made = True
        self.loop.call_later(GRACE, self._connections.note_age, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        super().connection_lost(exc)

    @property
    def _newest_request(self) -> RequestResponseCycle | None:
        """The request whose headers came last, and its answer."""
        return self.cycle

    def is_known(self) -> bool:
        return self._newest_request is not None and ACCESS in self._newest_request.scope

    def cut(self) -> None:
        self.transport.abort()

    def check_deadline(self, now: float) -> None:
        if not self._is_made or self._is_stuck(now) or now < self._deadline:
            return
        if self.flow.read_paused:
            # The server itself has paused reading.
            self._deadline = now + self._limits.body_time
        elif not self._receives:
            self.transport.close()
        else:
            what = "headers" if self._in_head else "body"
            self._refuse(408, "request_timeout", f"the {what} of this request took too long")

    def _is_stuck(self, now: float) -> bool:
        """Whether the client takes nothing of its answers; the connection is cut then."""
        unsent, before = self.transport.get_write_buffer_size(), self._unsent
        self._unsent = unsent
        if not unsent or not before or unsent < before:
            self._moved_at = now
        elif now > self._moved_at + self._limits.answer_time:
            self.cut()
            return True
        return False

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._around += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The server upgrades to nothing: the request is answered as if it asked for no upgrade.
            pass
        except httptools.HttpParserError:
            self._refuse(*self._reason)
        else:
            if self._around > self._most_head + self._body:
                self._refuse(*self._too_large())

    def on_message_begin(self) -> None:
        self._receives = self._in_head = True
        self._head = self._fields = self._body = self._around = 0
        self._deadline = min(self._deadline, self.loop.time() + self._limits.head_time)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._head += len(url)
        if self._head > self._most_head:
            self._stop(*self._too_large())
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        self._head += len(name) + len(value) + HEADER_OVERHEAD
        if self._head > self._most_head or self._fields > self._most_fields:
            self._stop(*self._too_large())
        # A trailer after the body is ignored: the request was judged without it.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._deadline = self.loop.time() + self._limits.body_time
        if len(self.pipeline) >= self._limits.pipelined:
            self._stop(429, "too_many_requests", "wait for answers before you ask on")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._around -= len(body)
        self._body += len(body)
        # A request that was answered before its body came gets no more time for the body.
        if not self.cycle.response_complete:
            self._deadline += len(body) / self._limits.body_rate
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._receives = False
        if self.cycle.response_complete:
            self._deadline = self.loop.time() + self._limits.idle_time
        else:
            self._deadline = inf
            self._connections.note_heard(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            if not self._receives:
                self._deadline = self.loop.time() + self._limits.idle_time
            if not self.is_known():
                self._connections.note_silent(self)
        super().on_response_complete()

    def _too_large(self) -> tuple[int, str, str]:
        most = f"{self._most_head} bytes and {self._most_fields} headers"
        said = f"a request may begin with {most} at most"
        return 431, "headers_too_large", said

    def _stop(self, *reason: Any) -> None:
        self._reason = reason
        raise RequestTooLarge

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Send a refusal, unless another answer is under way here, and close the connection."""
        answers = self._may_answer()
        self._refused, self._deadline = True, inf
        self._connections.refused[code] += 1
        if (newest := self._newest_request) is not None and not newest.response_complete:
            newest.disconnected = True
            newest.message_event.set()
        if not answers:
            self.transport.abort()
            return
        self._connections.note_silent(self)
        self.transport.write(render_problem(status, code, detail))
        self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER, self.transport.abort)

    def _may_answer(self) -> bool:
        of_this = self._receives and not self._in_head
        newest = self._newest_request
        if newest is None or newest.response_complete:
            return not of_this
        return of_this and not self.pipeline and not newest.response_started
