"""Hints across machines: LISTEN on a connection of its own, kept open for ever."""

from __future__ import annotations

import logging
import os
import selectors
import socket
from collections.abc import Callable

import psycopg

from holdfast.randomness import Randomness
from holdfast.store.notifiers.memory import MemoryNotifier
from holdfast.store.postgresql.connection import Address, Connection, ConnectionLost
from holdfast.threads import Running, Threads

logger = logging.getLogger(__name__)

CHANNEL = "holdfast"
_FIRST_DELAY = 0.05
_LONGEST_DELAY = 5.0


class PostgresqlNotifier:
    def __init__(self, url: str, randomness: Randomness, threads: Threads) -> None:
        self._address = Address(url)
        self._randomness = randomness
        self._threads = threads
        self._memory = MemoryNotifier(threads)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{id(self)}"
        self._stop = threads.event()
        self._wake, self._woken = socket.socketpair()
        self._listener: Running | None = None

    def notify(self, *, served: bool = False) -> None:
        self._memory.notify(served=served)

    def subscribe(self, callback: Callable[[], None], *, served: bool = True) -> Callable[[], None]:
        return self._memory.subscribe(callback, served=served)

    def start(self) -> None:
        self._listener = self._threads.start("holdfast-listen", self._loop)

    def close(self) -> None:
        self._stop.set()
        self._wake.close()
        if self._listener is not None:
            self._listener.join()
        self._woken.close()

    def _loop(self) -> None:
        delay = _FIRST_DELAY
        while not self._stop.is_set():
            try:
                with self._address.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    delay = _FIRST_DELAY
                    # Whatever was sent while nobody listened is lost: have everyone look.
                    self._memory.notify()
                    self._listen(connection)
            except (ConnectionLost, psycopg.Error) as error:
                logger.debug("the listening connection was lost: %s", error)
                self._stop.wait(delay * (0.5 + self._randomness.random()))
                delay = min(_LONGEST_DELAY, delay * 2)

    def _listen(self, connection: Connection) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stop.is_set():
                selector.select()
                connection.pgconn.consume_input()
                heard = False
                while (hint := connection.pgconn.notifies()) is not None:
                    # Of its own commits this process has told itself, and sooner.
                    heard |= hint.extra != self.name.encode()
                if heard:
                    self._memory.notify()
