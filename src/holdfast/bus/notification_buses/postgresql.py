"""Notifications over the PostgreSQL that holds the store, apart from other buses by its driver."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from holdfast.bus.notification_bus import NotificationBus
from holdfast.engine.engine import EngineOwner, engine_of
from holdfast.errors import InvalidInput
from holdfast.store.database import is_postgresql

logger = logging.getLogger(__name__)

CHANNEL = "holdfast_notes"


class PostgresqlNotificationBus(NotificationBus):
    """For hundreds of messages a second at most: NOTIFY takes a lock of the whole server."""

    def __init__(self, store: EngineOwner) -> None:
        engine = engine_of(store)
        if not is_postgresql(engine.settings.url):
            reason = "has no way to others; use MemoryNotificationBus or RedisNotificationBus"
            raise InvalidInput("store", f"a store in a file {reason}")
        from holdfast.store.notifiers.postgresql import NotificationListener  # noqa: PLC0415 - slow to import

        super().__init__(engine.threads)
        self._database = engine.database
        self._kept_connection = engine.database.connect()
        self._sending = engine.threads.lock()
        self._listener = NotificationListener(
            engine.settings.url,
            CHANNEL,
            randomness=engine.randomness,
            threads=engine.threads,
            on_received=self._receive_all,
            on_listening=self.listening.set,
        )

    def _send(self, text: str) -> bool:
        try:
            with self._sending, self._kept_connection.begin() as connection:
                self._database.join(connection).run("send_note", text=text)
        except Exception:
            logger.debug("a notification could not be sent", exc_info=True)
            return False
        return True

    def start(self) -> None:
        self._listener.start()

    def close(self) -> None:
        self._listener.close()

    def _receive_all(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._receive(text)
