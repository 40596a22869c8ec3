"""Hints across machines by LISTEN and NOTIFY, on a connection that is reopened when it is lost."""

from __future__ import annotations

import logging
import os
import selectors
import socket
from collections.abc import Callable, Sequence

import psycopg

from holdfast.randomness import Randomness
from holdfast.store.notifiers.memory import MemoryNotifier
from holdfast.store.postgresql.connection import Connection, ConnectionLost, ServerAddress
from holdfast.threads import RunningThread, Threads

logger = logging.getLogger(__name__)
CHANNEL = "holdfast"

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 5.0


class NotificationListener:
    """Calls `on_listening` whenever it begins to listen, and `on_received` with the payloads."""

    def __init__(  # noqa: PLR0913 - the channel, the ports and the callbacks
        self,
        url: str,
        channel: str,
        *,
        randomness: Randomness,
        threads: Threads,
        on_received: Callable[[Sequence[str]], None],
        on_listening: Callable[[], None],
    ) -> None:
        self._address = ServerAddress(url)
        self._channel = channel
        self._randomness = randomness
        self._threads = threads
        self._on_received = on_received
        self._on_listening = on_listening
        self._stop = threads.event()
        self._wake, self._woken = socket.socketpair()
        self._thread: RunningThread | None = None

    def start(self) -> None:
        self._thread = self._threads.start("holdfast-listen", self._loop)

    def close(self) -> None:
        self._stop.set()
        self._wake.close()
        if self._thread is not None:
            self._thread.join()
        self._woken.close()

    def _loop(self) -> None:
        delay = _FIRST_DELAY
        while not self._stop.is_set():
            try:
                with self._address.connect() as connection:
                    connection.execute(f"LISTEN {self._channel}")
                    delay = _FIRST_DELAY
                    self._on_listening()
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
                came: list[str] = []
                while (hint := connection.pgconn.notifies()) is not None:
                    came.append(hint.extra.decode(errors="replace"))
                if came:
                    self._on_received(came)


class PostgresqlNotifier:
    def __init__(self, url: str, randomness: Randomness, threads: Threads) -> None:
        self._memory = MemoryNotifier(threads)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{id(self)}"
        self._listener = NotificationListener(
            url,
            CHANNEL,
            randomness=randomness,
            threads=threads,
            on_received=self._on_received,
            # Hints that were sent before the connection listened are lost, so everyone looks.
            on_listening=self._notify_foreign,
        )

    def notify(self, *, served: bool = False) -> None:
        self._memory.notify(served=served)

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        return self._memory.subscribe(callback, served=served, own=own)

    def start(self) -> None:
        self._listener.start()

    def close(self) -> None:
        self._listener.close()

    def _on_received(self, senders: Sequence[str]) -> None:
        # The subscribers of this process have had a hint of its own commits already.
        if any(sender != self.name for sender in senders):
            self._notify_foreign()

    def _notify_foreign(self) -> None:
        self._memory.notify(own=False)
