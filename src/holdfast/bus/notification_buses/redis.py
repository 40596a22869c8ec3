"""Notifications over Redis pub/sub."""

from __future__ import annotations

import logging

from holdfast.bus.execution_buses.redis import PREFIX
from holdfast.bus.notification_bus import NotificationBus
from holdfast.bus.redis_client import connect, translate_redis_errors
from holdfast.errors import BusUnreachable
from holdfast.model.text import clean_name
from holdfast.threads import RunningThread, SystemThreads, Threads

logger = logging.getLogger(__name__)

_LISTEN_SECONDS = 0.2
_RECONNECT_SECONDS = 0.5


class RedisNotificationBus(NotificationBus):
    def __init__(self, url: str, *, prefix: str = PREFIX, threads: Threads | None = None) -> None:
        chosen = threads or SystemThreads()
        super().__init__(chosen)
        self._threads = chosen
        self._channel = f"{clean_name('prefix', prefix)}:notes"
        self._client = connect(url)
        self._stop = chosen.event()
        self._thread: RunningThread | None = None

    def _send(self, text: str) -> bool:
        try:
            with translate_redis_errors():
                self._client.publish(self._channel, text)
        except BusUnreachable:
            logger.debug("a notification could not be sent", exc_info=True)
            return False
        return True

    def start(self) -> None:
        self._thread = self._threads.start("holdfast-notes", self._run)

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._client.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with translate_redis_errors():
                    self._listen()
            except BusUnreachable:
                logger.debug("Redis is away; notifications are missed until it is back")
                self.listening.clear()
                self._stop.wait(_RECONNECT_SECONDS)

    def _listen(self) -> None:
        with self._client.pubsub() as pubsub:
            pubsub.subscribe(self._channel)
            while not self._stop.is_set():
                came = pubsub.get_message(timeout=_LISTEN_SECONDS)
                if came is not None and came["type"] == "subscribe":
                    self.listening.set()
                elif came is not None and came["type"] == "message":
                    self._receive(came["data"])
