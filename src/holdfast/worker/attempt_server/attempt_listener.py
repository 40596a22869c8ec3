"""Attempt listener: a small HTTP server on loopback for the commands of a worker.

Any local user can connect to it. Until a call has shown a good token, it gets a few seconds and a
few kilobytes, and its connection is closed first when there are too many.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import resource
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from holdfast.threads import Threads
from holdfast.worker.attempt_server.attempt_requests import AttemptRequest
from holdfast.worker.problem import HttpReply, problem

HOST = "127.0.0.1"
MOST_CONNECTIONS = 128
# Connections take at most this share of the files that the worker may open. If files run out all
# the same, `CLOSED_AT_ONCE` of the oldest ones are closed, and none is accepted for a moment.
SHARE_OF_OPEN_FILES = 0.25
CLOSED_AT_ONCE = 8
ACCEPT_PAUSE = 0.05
MOST_HEAD = 16 * 1024
MOST_BODY = 16 * 1024 * 1024
# So many bytes of a refused body are read and discarded, so that its sender reads the refusal.
MOST_DISCARDED = 64 * 1024
HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
DISCARD_SECONDS = 1.0
CALLS_AT_ONCE = 8
BACKLOG = 128
LOOP_PASSES = 5
_BEARER = re.compile(r"[Bb]earer +([A-Za-z0-9_-]{1,200}) *")
_CONNECTION_ERRORS = (ConnectionError, TimeoutError, asyncio.IncompleteReadError, OSError)

AnswerRequest = Callable[[AttemptRequest], HttpReply]
log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class RequestHead:
    """The request line and the headers of a request."""

    method: str
    path: str
    headers: dict[str, str]

    @property
    def token(self) -> str:
        found = _BEARER.fullmatch(self.headers.get("authorization", ""))
        return "" if found is None else found[1]

    @property
    def body_length(self) -> int | None:
        """The length of the body; None unless `Content-Length` alone states it."""
        said = self.headers.get("content-length", "0")
        unclear = "transfer-encoding" in self.headers or len(said) > len(str(MOST_BODY)) + 1
        return None if unclear or not (said.isascii() and said.isdecimal()) else int(said)

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


def read_head(data: bytes) -> RequestHead | None:
    """The head of a request; None if it is malformed or repeats a header."""
    first, *lines = data.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in {"HTTP/1.1", "HTTP/1.0"}:  # noqa: PLR2004 - method, path, version
        return None
    headers: dict[str, str] = {}
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or name in headers:
            return None
        headers[name] = value.strip()
    if parts[2] == "HTTP/1.0":
        headers["connection"] = "close"
    return RequestHead(method=parts[0], path=parts[1], headers=headers)


class AttemptListener:
    """The listener; `find` gives the function that answers the calls of a token, if any."""

    def __init__(self, threads: Threads, find: Callable[[str], AnswerRequest | None]) -> None:
        self._threads = threads
        self._find_answer = find
        self._connections: set[asyncio.StreamWriter] = set()
        # The oldest first; connections that have shown a good token are not among them.
        self._unauthenticated: dict[asyncio.StreamWriter, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._most_connections = max(
            CLOSED_AT_ONCE, min(MOST_CONNECTIONS, int(_open_file_limit() * SHARE_OF_OPEN_FILES))
        )
        self._warned = False
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._executor = ThreadPoolExecutor(CALLS_AT_ONCE, "holdfast-address")

    def start(self) -> str:
        """Begin to listen; gives the URL."""
        try:
            listening_socket = socket.create_server((HOST, 0), backlog=BACKLOG)
        except OSError:
            self._loop.close()
            raise
        port: int = listening_socket.getsockname()[1]
        self._threads.start("holdfast-address", partial(self._run, listening_socket))
        return f"http://{HOST}:{port}"

    def stop(self) -> None:
        """Stop listening, and close the connections that are left."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stopping.set)

    def _run(self, listening_socket: socket.socket) -> None:
        try:
            self._loop.run_until_complete(self._serve(listening_socket))
        finally:
            self._executor.shutdown(wait=False)
            self._loop.close()

    async def _serve(self, listening_socket: socket.socket) -> None:
        with listening_socket:
            listening_socket.settimeout(0)
            self._listen(listening_socket)
            await self._stopping.wait()
            # A connection that was accepted just now is in `_connections` a few passes later.
            self._loop.remove_reader(listening_socket)
            await _pass_loop()
        for writer in self._connections:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await _pass_loop()

    def _listen(self, listening_socket: socket.socket) -> None:
        if not self._stopping.is_set():
            self._loop.add_reader(listening_socket, self._accept, listening_socket)

    def _accept(self, listening_socket: socket.socket) -> None:
        """Accept one connection, so that the calls of earlier ones are served in between."""
        try:
            connection, _ = listening_socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._make_room(error)
            self._loop.remove_reader(listening_socket)
            self._loop.call_later(ACCEPT_PAUSE, self._listen, listening_socket)
            return
        connection.settimeout(0)
        self._start_task(self._open_connection(connection))

    async def _open_connection(self, connection: socket.socket) -> None:
        reader = asyncio.StreamReader(limit=MOST_HEAD)
        protocol = asyncio.StreamReaderProtocol(reader, self._on_connection)
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            connection.close()

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _make_room(self, error: OSError) -> None:
        if not self._warned:
            log.warning("calls of commands wait: %s; `ulimit -n` allows more", error.strerror)
        self._warned = True
        for oldest in [*self._unauthenticated][:CLOSED_AT_ONCE]:
            oldest.transport.abort()
            self._forget_connection(oldest)

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._most_connections:
            # The oldest connection without a good token is closed, or else this new one.
            oldest = next(iter(self._unauthenticated), writer)
            oldest.transport.abort()
            self._forget_connection(oldest)
            if oldest is writer:
                return
        self._connections.add(writer)
        self._unauthenticated[writer] = None
        self._start_task(self._serve_connection(reader, writer))

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except _CONNECTION_ERRORS:
            pass
        finally:
            self._forget_connection(writer)
            writer.close()

    def _forget_connection(self, writer: asyncio.StreamWriter) -> None:
        self._connections.discard(writer)
        self._unauthenticated.pop(writer, None)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One call and its answer; gives whether the connection stays open."""
        async with asyncio.timeout(HEAD_SECONDS):
            try:
                head = read_head(await reader.readuntil(b"\r\n\r\n"))
            except asyncio.LimitOverrunError:
                detail = f"the headers may have {MOST_HEAD} bytes at most"
                await self._write(writer, problem(431, "too_large", detail))
                return False
        if head is None:
            await self._write(writer, problem(400, "invalid_request", "this is no HTTP/1.1"))
            return False
        answer = self._find_answer(head.token)
        refusal = _check_head(head, answer)
        if refusal is not None or answer is None:
            await self._discard_body(reader, head)
            await self._write(writer, refusal or _UNKNOWN_TOKEN)
            return False
        self._unauthenticated.pop(writer, None)
        if head.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async with asyncio.timeout(BODY_SECONDS):
            body = await reader.readexactly(head.body_length or 0)
        kind = head.headers.get("content-type", "")
        request = AttemptRequest(method=head.method, path=head.path, kind=kind, body=body)
        reply = await self._loop.run_in_executor(self._executor, _answer_safely, answer, request)
        await self._write(writer, reply, keeps_alive=head.keeps_alive)
        return head.keeps_alive

    async def _discard_body(self, reader: asyncio.StreamReader, head: RequestHead) -> None:
        with suppress(*_CONNECTION_ERRORS):
            async with asyncio.timeout(DISCARD_SECONDS):
                await reader.readexactly(min(head.body_length or 0, MOST_DISCARDED))

    async def _write(
        self, writer: asyncio.StreamWriter, reply: HttpReply, *, keeps_alive: bool = False
    ) -> None:
        try:
            text = json.dumps(reply.body).encode()
        except (ValueError, RecursionError):
            # The reply of a remote server can hold anything.
            reply = problem(503, "store_unavailable", "the answer cannot be read; ask again")
            text = json.dumps(reply.body).encode()
        kind = "application/problem+json" if reply.refused else "application/json"
        lines = [
            f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(text)}",
            f"Connection: {'keep-alive' if keeps_alive else 'close'}",
        ]
        if reply.status == HTTPStatus.SERVICE_UNAVAILABLE:
            lines.append("Retry-After: 1")
        writer.write("\r\n".join([*lines, "", ""]).encode() + text)
        async with asyncio.timeout(HEAD_SECONDS):
            await writer.drain()


def _open_file_limit() -> int:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS * 8 if most == resource.RLIM_INFINITY else most


async def _pass_loop() -> None:
    """Let the loop carry out the callbacks and tasks that are ready."""
    for _ in range(LOOP_PASSES):
        await asyncio.sleep(0)


_UNKNOWN_TOKEN = problem(
    401,
    "unauthorized",
    "send Authorization: Bearer with HOLDFAST_TOKEN as the command of a running attempt has it; "
    "of an attempt that has ended it is not taken any more",
)


def _check_head(head: RequestHead, answer: AnswerRequest | None) -> HttpReply | None:
    """The refusal of a call by its head alone; None if its body may be read."""
    if answer is None:
        return _UNKNOWN_TOKEN
    if head.body_length is None:
        return problem(411, "length_required", "send the body with its Content-Length")
    if head.body_length > MOST_BODY:
        return problem(413, "too_large", f"a body may have {MOST_BODY} bytes at most")
    return None


def _answer_safely(answer: AnswerRequest, request: AttemptRequest) -> HttpReply:
    try:
        return answer(request)
    except Exception:
        log.exception("a call of a command is not answered")
        return problem(500, "internal_error", "something went wrong; the worker's log tells more")
