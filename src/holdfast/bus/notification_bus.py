"""The port of the bus for what is good to know: told to whoever listens now, and kept by nobody."""

from __future__ import annotations

import json
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Self

from holdfast.model.text import clean_name, encode_json
from holdfast.threads import Threads

logger = logging.getLogger(__name__)

# As much as PostgreSQL carries, less what is put around it.
MOST_BYTES = 7_000

Callback = Callable[[str, Any], object]


class Topic(StrEnum):
    MONITORING = "monitoring"
    LOGS = "logs"


class NotificationBus(ABC):
    """What is published may reach nobody, and nothing may depend on it."""

    def __init__(self, threads: Threads) -> None:
        self._sender = f"{socket.gethostname()}-{os.getpid()}-{id(self)}"
        # Set while it hears what other processes publish.
        self.listening = threads.event()
        self._lock = threads.lock()
        # Replaced, never changed, so that telling can walk it without the lock.
        self._callbacks: dict[object, tuple[str, Callback]] = {}

    def publish(self, topic: str, message: object) -> bool:
        """Tell this process at once and others soon; whether it left for the others."""
        clean_name("topic", topic)
        text = encode_json("message", message, limit=MOST_BYTES)
        self._call_subscribers(topic, text)
        return self._send(f"{self._sender} {topic} {text}")

    def subscribe(self, topic: str, callback: Callback) -> Callable[[], None]:
        """Call back with topic and message, from any thread, until what is returned is called."""
        key = object()
        with self._lock:
            self._callbacks = {**self._callbacks, key: (clean_name("topic", topic), callback)}

        def unsubscribe() -> None:
            with self._lock:
                others = self._callbacks.items()
                self._callbacks = {other: each for other, each in others if other is not key}

        return unsubscribe

    def _receive(self, text: str) -> None:
        """Pass on what came from elsewhere; what cannot be read is nobody's message."""
        try:
            sender, topic, message = text.split(" ", 2)
            json.loads(message)
        except ValueError:
            logger.debug("something else was sent to the notification bus")
            return
        if sender != self._sender:
            self._call_subscribers(topic, message)

    def _call_subscribers(self, topic: str, text: str) -> None:
        for wanted, callback in self._callbacks.values():
            if wanted == topic:
                try:
                    callback(topic, json.loads(text))
                except Exception:
                    logger.exception("a subscriber failed on a notification about %s", topic)

    @abstractmethod
    def _send(self, text: str) -> bool:
        """Whether it left for other processes; never an error."""

    @abstractmethod
    def start(self) -> None:
        """Listen to other processes from now on."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
