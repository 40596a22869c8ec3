"""Hints inside one process: this notifier stands alone because all others are built on it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from holdfast.threads import Threads

logger = logging.getLogger(__name__)


class MemoryNotifier:
    name = ""

    def __init__(self, threads: Threads) -> None:
        self._lock = threads.lock()
        # The dictionary is replaced, never changed, so that notify() walks it without the lock.
        self._subscribers: dict[object, tuple[Callable[[], None], bool, bool]] = {}

    def notify(self, *, served: bool = False, own: bool = True) -> None:
        for callback, wants_served, wants_own in self._subscribers.values():
            if (served and not wants_served) or (own and not wants_own):
                continue
            try:
                callback()
            except Exception:
                logger.exception("a subscriber failed on a hint")

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        key = object()
        with self._lock:
            # The newest subscriber is called first: recovery, which subscribes first, can wait.
            self._subscribers = {key: (callback, served, own), **self._subscribers}

        def unsubscribe() -> None:
            with self._lock:
                remaining = self._subscribers.items()
                self._subscribers = {other: each for other, each in remaining if other is not key}

        return unsubscribe

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass
