"""Whose a Redis is: of two stores that hear on one, each would be given a part of what comes."""

from __future__ import annotations

import logging

from holdfast.bus.execution_bus import ExecutionBus
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.engine.engine import Engine

logger = logging.getLogger(__name__)

# How often it is asked again: a Redis may be lost with the name on it, or given free.
SLOWLY = 30.0


class Ownership:
    """Whether a bus is this store's to hear: its own always is, a Redis is the first one's."""

    def __init__(self, engine: Engine, bus: ExecutionBus) -> None:
        self._engine = engine
        self._bus = bus
        self._lock = engine.threads.lock()
        self._asked: float | None = None
        self._stands = True

    def stands(self) -> bool:
        if not isinstance(self._bus, RedisBus):
            return True
        with self._lock:
            now = self._engine.clock.monotonic()
            if self._asked is None or now - self._asked >= SLOWLY:
                self._ask(self._bus)
                self._asked = now
            return self._stands

    def _ask(self, bus: RedisBus) -> None:
        stood, self._stands = self._stands, bus.owner(self._engine.store) == self._engine.store
        if stood and not self._stands:
            logger.warning(
                "another store hears the commands and results on this Redis, and this one does not:"
                " give this one another Redis, or hear from a program with RedisBus(url, prefix=…);"
                " if that store is no more, delete the key %s",
                bus.owner_key,
            )
