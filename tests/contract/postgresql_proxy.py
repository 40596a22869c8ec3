"""A wire to PostgreSQL that counts round trips, and can be cut at the moment a test chooses."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum, auto
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

_CHUNK = 1 << 16
# The end of what a client sends before it waits.
_SYNC = b"S\x00\x00\x00\x04"


class Cut(Enum):
    """What happens to the next thing the client sends."""

    BEFORE_THE_SERVER_GOT_IT = auto()
    AFTER_THE_SERVER_GOT_IT = auto()
    AFTER_THE_SERVER_ANSWERED = auto()


class Proxy:
    def __init__(self, url: str) -> None:
        self._server = conninfo_to_dict(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._cut: Cut | None = None
        self._refuse_after = False
        self._refusing = False
        self._clients: set[socket.socket] = set()
        self._gate = threading.Lock()
        self.cuts = 0
        # For each connection, in the order of their beginnings, how often the client has sent
        # something after the server had: the first connection of a store is that of its writer.
        self.round_trips: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        user, database = (quote(str(self._server[key])) for key in ("user", "dbname"))
        password = quote(str(self._server.get("password") or ""))
        port = self._listener.getsockname()[1]
        options = "sslmode=disable&gssencmode=disable"
        return f"postgresql://{user}:{password}@127.0.0.1:{port}/{database}?{options}"

    def cut(self, when: Cut, *, then_refuse: bool = False) -> None:
        """Cut the connection that sends next, and optionally let nobody in afterwards."""
        self._refuse_after = then_refuse
        self._cut = when

    def refuse(self) -> None:
        self._refusing = True

    def sever(self) -> None:
        """Cut every connection there is, and let nobody in."""
        with self._gate:
            self._refusing = True
            for client in self._clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def admit(self) -> None:
        self._refusing = False

    def close(self) -> None:
        # Closing alone would leave the accepting thread where it is.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._let_in(client):
                    arguments = (client, self._connect(), len(self.round_trips))
                    self.round_trips.append(0)
                    threading.Thread(target=self._carry, args=arguments, daemon=True).start()
                else:
                    client.close()

    def _let_in(self, client: socket.socket) -> bool:
        with self._gate:
            if not self._refusing:
                self._clients.add(client)
            return not self._refusing

    def _let_go(self, client: socket.socket) -> None:
        with self._gate:
            self._clients.discard(client)

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host") or "localhost"), self._server.get("port") or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _carry(self, client: socket.socket, server: socket.socket, number: int) -> None:
        answered = True
        with ExitStack() as stack, selectors.DefaultSelector() as selector, suppress(OSError):
            for each in (client, server):
                stack.enter_context(each)
            stack.callback(self._let_go, client)
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is client:
                        data = client.recv(_CHUNK)
                        # A goodbye (X) of a connection that nobody needs is not what is waited for.
                        if self._cut and data and not data.startswith(b"X"):
                            return self._make_the_cut(client, server, data)
                        self.round_trips[number] += answered
                        answered = False
                        server.sendall(data)
                    else:
                        data = server.recv(_CHUNK)
                        answered = True
                        client.sendall(data)
                    if not data:
                        return None

    def _make_the_cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        when, self._cut = self._cut, None
        self._refusing = self._refuse_after
        if when is not Cut.BEFORE_THE_SERVER_GOT_IT:
            server.sendall(data)
            while not data.endswith(_SYNC):
                data = client.recv(_CHUNK)
                server.sendall(data)
        if when is Cut.AFTER_THE_SERVER_ANSWERED:
            server.recv(_CHUNK)
        self.cuts += 1


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
