"""Hints across machines: LISTEN on a connection of its own, kept open for ever."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence

from holdfast.randomness import Randomness
from holdfast.store.notifiers.listener import Listener
from holdfast.store.notifiers.memory import MemoryNotifier
from holdfast.threads import Threads

CHANNEL = "holdfast"


class PostgresqlNotifier:
    def __init__(self, url: str, randomness: Randomness, threads: Threads) -> None:
        self._memory = MemoryNotifier(threads)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{id(self)}"
        self._listener = Listener(
            url,
            CHANNEL,
            randomness=randomness,
            threads=threads,
            hear=self._hear,
            # Whatever was sent while nobody listened is lost: have everyone look.
            begun=self._tell,
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

    def _hear(self, senders: Sequence[str]) -> None:
        # Of its own commits this process has told itself, and sooner.
        if any(sender != self.name for sender in senders):
            self._tell()

    def _tell(self) -> None:
        self._memory.notify(own=False)
