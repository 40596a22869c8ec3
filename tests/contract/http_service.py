"""An HTTP server for tests: it answers what a test has laid out for it, and keeps what it heard."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.race.racers import PATIENCE


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    after: threading.Event | None = None


@dataclass(frozen=True, kw_only=True)
class Heard:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Service:
    """Answers the replies one after another, and the last one ever after."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.heard: list[Heard] = []
        self.url = ""

    def answer(self, heard: Heard) -> Reply:
        self.heard.append(heard)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Whoever called has gone, which is what some tests are about."""


@contextmanager
def service(*replies: Reply) -> Iterator[Service]:
    with standing(Service(*replies)) as made:
        yield made


@contextmanager
def standing(made: Service) -> Iterator[Service]:
    """A service that finds its answers in a way of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(size)
            heard = Heard(method=self.command, path=self.path, headers=headers, body=body)
            reply = made.answer(heard)
            if reply.after is not None:
                reply.after.wait(PATIENCE)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST  # noqa: N815 - the name that the standard library calls

        def log_message(self, *_: object) -> None: ...

    with Server(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
