"""The port of the notification bus: messages go to those who listen now, and are not kept."""

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

# The limit of NOTIFY in PostgreSQL, less the sender and the topic.
MOST_BYTES = 7_000

Callback = Callable[[str, Any], object]


class Topic(StrEnum):
    MONITORING = "monitoring"
    LOGS = "logs"


class NotificationBus(ABC):
    """A bus whose messages may reach nobody; nothing may depend on one."""

    def __init__(self, threads: Threads) -> None:
        self._sender = f"{socket.gethostname()}-{os.getpid()}-{id(self)}"
        # Set while messages of other processes are received.
        self.listening = threads.event()
        self._lock = threads.lock()
        # The dictionary is replaced, never changed, so that it is walked without the lock.
        self._callbacks: dict[object, tuple[str, Callback]] = {}

    def publish(self, topic: str, message: object) -> bool:
        """Publish in this process at once, and in others soon; False if it could not be sent."""
        clean_name("topic", topic)
        text = encode_json("message", message, limit=MOST_BYTES)
        self._call_subscribers(topic, text)
        return self._send(f"{self._sender} {topic} {text}")

    def subscribe(self, topic: str, callback: Callback) -> Callable[[], None]:
        """Call `callback` with topic and message, from any thread; the result ends that."""
        key = object()
        with self._lock:
            self._callbacks = {**self._callbacks, key: (clean_name("topic", topic), callback)}

        def unsubscribe() -> None:
            with self._lock:
                others = self._callbacks.items()
                self._callbacks = {other: each for other, each in others if other is not key}

        return unsubscribe

    def _receive(self, text: str) -> None:
        """Give a message of another process to the subscribers; ignore what cannot be read."""
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
        """Send a text to other processes; False if that failed, and never an error."""

    @abstractmethod
    def start(self) -> None:
        """Begin to listen to other processes."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
