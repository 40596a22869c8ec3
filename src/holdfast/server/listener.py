"""Listener: accepts connections while there is room, and pauses when descriptors run out."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM
from math import inf

from holdfast.server.connection import Connection, render_problem
from holdfast.server.connection_limits import GRACE, Connections

# Silent connections that are closed at once to make room, and seconds between warnings.
CLOSED_AT_ONCE = 8
WARNING_INTERVAL = 60.0
OUT_OF_DESCRIPTORS = frozenset({EMFILE, ENFILE, ENOBUFS, ENOMEM})
SERVER_FULL = render_problem(
    503, "too_many_connections", "this server has no room for a connection more"
)
ADDRESS_FULL = render_problem(
    429, "too_many_connections", "this address has too many connections open"
)

log = logging.getLogger("holdfast.server")


class Listener:
    """Gives each connection of a socket to a protocol of its own, on the loop that opened it."""

    def __init__(
        self,
        listens: socket.socket,
        connections: Connections,
        make: Callable[[str], Connection],
    ) -> None:
        self._socket = listens
        self._connections = connections
        self._make_connection = make
        self._loop: asyncio.AbstractEventLoop
        self._again: asyncio.TimerHandle | None = None
        self._told_at = -inf
        self._connecting: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket.settimeout(0)
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        if self._again is not None:
            self._again.cancel()

    def _accept(self) -> None:
        while not self._connections.crowded:
            try:
                made, name = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                self._make_room(error)
                break
            made.settimeout(0)
            self._admit(made, self._connections.address_of(name[:2]))
        self._loop.remove_reader(self._socket)
        self._again = self._loop.call_later(
            GRACE, self._loop.add_reader, self._socket, self._accept
        )

    def _admit(self, made: socket.socket, address: str) -> None:
        full = self._connections.admit(address)
        if full is not None:
            self._connections.refused["too_many_connections"] += 1
            _refuse_connection(made, full)
            return
        connection = self._make_connection(address)
        self._connections.add(connection)
        task = self._loop.create_task(self._connect(made, connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, made: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, made)
        except OSError:
            self._connections.remove(connection)
            made.close()

    def _make_room(self, error: OSError) -> None:
        now = self._loop.time()
        if now > self._told_at + WARNING_INTERVAL:
            self._told_at = now
            log.warning(
                "no connection can be accepted: %s; the oldest without a request are closed, and "
                "`ulimit -n` before the start allows more",
                error.strerror,
            )
        self._connections.cut_silent(CLOSED_AT_ONCE)


def _refuse_connection(made: socket.socket, full: str) -> None:
    try:
        made.send(ADDRESS_FULL if full == "address" else SERVER_FULL)
        made.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    finally:
        made.close()
