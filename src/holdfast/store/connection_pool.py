"""A connection pool: threads borrow connections and return them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from holdfast.threads import Lock

C = TypeVar("C")


class ConnectionPool(Generic[C]):
    """Opens as many connections as are in use at once, and keeps up to `spare` idle ones."""

    def __init__(
        self,
        connect: Callable[[], C],
        *,
        close: Callable[[C], None],
        usable: Callable[[C], bool],
        lock: Lock,
        spare: int,
    ) -> None:
        self._connect = connect
        self._close = close
        self._usable = usable
        self._lock = lock
        self._spare = spare
        self._idle: list[C] = []

    @contextmanager
    def borrow(self) -> Iterator[C]:
        connection = self._take_connection()
        try:
            yield connection
        finally:
            self._return_connection(connection)

    def discard(self) -> None:
        """Close the idle connections: where one connection broke, the others are likely broken."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._close(connection)

    def close(self) -> None:
        self._spare = 0
        self.discard()

    def _take_connection(self) -> C:
        with self._lock:
            # The connection used last is taken first, so that few connections go stale.
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _return_connection(self, connection: C) -> None:
        if self._usable(connection):
            with self._lock:
                if len(self._idle) < self._spare:
                    self._idle.append(connection)
                    return
        self._close(connection)
