"""HTTP server: the process that serves, from its socket to the end of its draining."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EADDRINUSE, EADDRNOTAVAIL
from math import ceil

import uvicorn

from holdfast.errors import InvalidInput
from holdfast.server.application import Application
from holdfast.server.connection import Connection
from holdfast.server.connection_limits import Connections
from holdfast.server.listen_address import ListenAddress
from holdfast.server.listener import Listener
from holdfast.stop_signals import stop_between_transactions

log = logging.getLogger("holdfast.server")

BACKLOG = 2_048
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds for calls under way before their connections are cut.
DRAIN_SECONDS = 30
# The number of new objects that starts a collection.
COLLECTOR_THRESHOLD = 20_000


class HttpServer:
    """Serves an application from `run` until `stop`, which any thread may call."""

    def __init__(
        self,
        application: Application,
        bind: ListenAddress,
        *,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        bind.check()
        self._socket = _open_socket(bind)
        config = uvicorn.Config(
            application.gate,
            interface="asgi3",
            http=Connection,
            log_config=None,
            access_log=False,
            server_header=False,
            # Only `--proxy` names trusted proxies; the variables of uvicorn do not count.
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=ceil(application.limits.idle_time),
            timeout_graceful_shutdown=ceil(drain_seconds),
        )
        self._server = _DrainingServer(config, application, self._socket)

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self) -> None:
        with self._socket:
            asyncio.run(self._server.serve())

    def stop(self) -> None:
        self._server.should_exit = True


class _DrainingServer(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, application: Application, listens: socket.socket
    ) -> None:
        super().__init__(config)
        self._application = application
        self._connections = Connections(
            application.limits, application.server_state.refused, application.is_proxy
        )
        self._listener = Listener(listens, self._connections, self._make_connection)
        self._looking: asyncio.Task[None] | None = None

    def _make_connection(self, address: str) -> Connection:
        return Connection(
            self._connections,
            address,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn itself listens to no socket.
        await super().startup(sockets or [])
        self._application.server_state.begin()
        self._looking = asyncio.get_running_loop().create_task(
            self._connections.check_periodically()
        )
        self._listener.open()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End long polls and streams first, since uvicorn waits for all calls under way."""
        log.info(
            "draining: nobody new is served, and what is under way may take %s seconds; a second "
            "signal ends it at once",
            self.config.timeout_graceful_shutdown,
        )
        self._listener.close()
        self._application.server_state.close()
        await super().shutdown(sockets)
        if self._looking is not None:
            self._looking.cancel()
        await self._application.server_state.end()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `serve_until_signalled`."""
        yield


def _open_socket(bind: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    # The loop sets TCP_NODELAY on sockets of this protocol, so small answers are not held back.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((bind.host.strip("[]"), bind.port))
        # From here on clients wait, and are not refused.
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        taken = "; --port 0 takes a free one" if error.errno == EADDRINUSE else ""
        reason = f"{bind.host}:{bind.port} cannot be listened on: {error.strerror}{taken}"
        # An unknown name, or one of another machine, is a mistake in the host and not in the port.
        ours = isinstance(error, socket.gaierror) or error.errno == EADDRNOTAVAIL
        raise InvalidInput("host" if ours else "port", reason) from error
    made.set_inheritable(False)
    return made


def collect_less_often() -> None:
    """Have the garbage collector skip loaded modules, and run less often than every other call.

    A collector that is off, or set to run less often than this, stays so.
    """
    gc.freeze()
    youngest, *older = gc.get_threshold()
    if youngest:
        gc.set_threshold(max(youngest, COLLECTOR_THRESHOLD), *older)


def serve_until_signalled(server: HttpServer, also: Callable[[], None] = lambda: None) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, then drain."""

    def hear(number: int, _: object) -> None:
        also()
        server.stop()
        # A second signal has its default effect.
        signal.signal(number, signal.SIG_DFL)

    collect_less_often()
    # A signal that is ignored stays ignored, as SIGHUP under nohup.
    heard = [each for each in STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, hear) for each in heard}
    try:
        with stop_between_transactions():
            server.run()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
