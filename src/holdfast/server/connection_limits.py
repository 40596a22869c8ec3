"""Connection limits: how many connections there may be, and what each may send and take.

A connection is silent unless its last request came with a good token, or a whole request of it is
being answered. Where there are too many, silent connections are closed, the oldest first.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from holdfast.server.auth.rate_limits import address_of_client

KIBIBYTE = 1024
# Descriptors that are left to the store, to logs and to steps.
RESERVED_DESCRIPTORS = 200
MIN_CONNECTIONS = 4
# Seconds between two checks of the deadlines of all connections.
CHECK_INTERVAL = 0.25
# Seconds in which a new connection is not closed for silence: most requests come at once.
GRACE = 0.003


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Limits of one connection, of one address and of all connections; times are seconds.

    - `connections`: how many there may be, where the process may open as many files
    - `address_share`, `silent_share`: the parts of them that one address may have, and that may be
      silent; one address may have that part of the silent ones
    - `head`, `headers`: how many bytes and headers a request may begin with
    - `head_time`, `body_time`: how long a request's headers may take, and its body, which has a
      second more for each `body_rate` bytes that have come
    - `idle_time`, `answer_time`: how long nothing may be asked, and nothing of an answer be taken
    - `pipelined`: how many requests may wait for the answer to one before them
    - `streams`: how many event streams one token may read at once
    - `bodies`: how many bytes of bodies one token may have under way
    """

    connections: int = 5_000
    address_share: float = 0.5
    silent_share: float = 0.25
    head: int = 32 * KIBIBYTE
    headers: int = 100
    head_time: float = 10.0
    body_time: float = 30.0
    body_rate: int = 16 * KIBIBYTE
    idle_time: float = 75.0
    answer_time: float = 60.0
    pipelined: int = 100
    streams: int = 100
    bodies: int = 128 * 1024 * KIBIBYTE


class LimitedConnection(Protocol):
    """A connection as the limits see it."""

    address: str

    def is_known(self) -> bool:
        """Whether its present or last request came with a good token."""

    def check_deadline(self, now: float) -> None:
        """Close the connection if its client has taken too long."""

    def cut(self) -> None:
        """Close at once, without an answer."""


class Connections:
    """All connections of a server by age, and the silent ones, also by address."""

    def __init__(
        self,
        limits: ConnectionLimits,
        refused: Counter[str],
        is_proxy: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.limits = limits
        self.refused = refused
        # Connections through a proxy share its address: the limit of one address does not apply.
        self._is_proxy = is_proxy
        self._most = max(min(limits.connections, _count_available_descriptors()), MIN_CONNECTIONS)
        self._most_of_address = max(int(self._most * limits.address_share), MIN_CONNECTIONS)
        self._most_silent = max(int(self._most * limits.silent_share), MIN_CONNECTIONS)
        self._most_silent_of_address = max(
            int(self._most_silent * limits.address_share), MIN_CONNECTIONS
        )
        self._all: dict[LimitedConnection, None] = {}
        self._new: set[LimitedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._silent: dict[LimitedConnection, None] = {}
        self._silent_by_address: dict[str, dict[LimitedConnection, None]] = {}

    @property
    def crowded(self) -> bool:
        """Whether too many new connections wait for their first request to accept more."""
        return len(self._new) >= self._most_silent

    def address_of(self, client: tuple[str, int]) -> str:
        """The name a connection is counted under: a proxy by itself, others with their network."""
        return client[0] if self._is_proxy(client[0]) else address_of_client(client)

    def admit(self, address: str) -> str | None:
        """Make room for one more connection; without room, `address` or `server`, which is full."""
        full = self._by_address[address] >= self._most_of_address and not self._is_proxy(address)
        if full and not self._cut_oldest(self._silent_by_address.get(address, {})):
            return "address"
        if len(self._all) >= self._most and not self._cut_oldest(self._silent):
            return "server"
        return None

    def add(self, connection: LimitedConnection) -> None:
        self._all[connection] = None
        self._by_address[connection.address] += 1
        self._new.add(connection)

    def remove(self, connection: LimitedConnection) -> None:
        if connection not in self._all:
            return
        del self._all[connection]
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]
        self.note_heard(connection)

    def note_age(self, connection: LimitedConnection) -> None:
        """Count a connection as silent whose `GRACE` is over, unless it was heard by then."""
        if connection in self._new:
            self.note_silent(connection)

    def note_silent(self, connection: LimitedConnection) -> None:
        self._new.discard(connection)
        if connection not in self._all or connection in self._silent:
            return
        self._silent[connection] = None
        of_address = self._silent_by_address.setdefault(connection.address, {})
        of_address[connection] = None
        shares = not self._is_proxy(connection.address)
        if shares and len(of_address) > self._most_silent_of_address:
            self._cut_oldest(of_address)
        if len(self._silent) > self._most_silent:
            self._cut_oldest(self._silent)

    def note_heard(self, connection: LimitedConnection) -> None:
        self._new.discard(connection)
        if connection in self._silent:
            del self._silent[connection]
            of_address = self._silent_by_address[connection.address]
            del of_address[connection]
            if not of_address:
                del self._silent_by_address[connection.address]

    def cut_silent(self, number: int) -> None:
        """Close some of the oldest silent connections, because their descriptors are needed."""
        for _ in range(number):
            self._cut_oldest(self._silent)

    async def check_periodically(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            now = loop.time()
            for each in [*self._all]:
                each.check_deadline(now)

    def _cut_oldest(self, silent: dict[LimitedConnection, None]) -> bool:
        while silent:
            oldest = next(iter(silent))
            if oldest.is_known():
                # The token was recognised while the request was still coming.
                self.note_heard(oldest)
            else:
                self.remove(oldest)
                oldest.cut()
                return True
        return False


def _count_available_descriptors() -> int:
    """How many files this process may open for connections."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return 2**31
    return most - min(most // 2, RESERVED_DESCRIPTORS)
