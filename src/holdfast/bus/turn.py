"""One of many: who holds a named lease does the work, and another within seconds of its end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from holdfast.engine.engine import Engine

_LOOKS_PER_TTL = 3


class Turn:
    """Asks for the lease, or renews it, as often as is needed; `begun` is called when it is new."""

    def __init__(self, engine: Engine, key: str, *, ttl: float, begun: Callable[[], None]) -> None:
        self._engine = engine
        self._key = key
        self._ttl = ttl
        self._begun = begun
        self._token: str | None = None
        self._asked: float | None = None

    def hold(self) -> bool:
        """Whether it is this one's turn."""
        now = self._engine.clock.monotonic()
        if self._asked is None or now - self._asked >= self._ttl / _LOOKS_PER_TTL:
            self._asked = now
            self._ask()
        return self._token is not None

    def step_down(self) -> None:
        """Let whoever can go on; it may be this one, with a fresh look."""
        token, self._token, self._asked = self._token, None, None
        if token is not None:
            self._engine.leases.release(self._key, token)

    def _ask(self) -> None:
        leases = self._engine.leases
        if self._token is not None and leases.renew(self._key, self._token, ttl=self._ttl).ok:
            return
        lease = leases.acquire(self._key, _process(), ttl=self._ttl)
        self._token = None if lease is None else lease.token
        if lease is not None:
            self._begun()


def _process() -> str:
    """Who holds a turn, for whoever asks: nothing is told from the name."""
    return f"{socket.gethostname()}:{os.getpid()}"
