"""Who hears hints, and waits for them."""

from __future__ import annotations

import threading


class Ear:
    """Counts hints, and lets a test wait for the next."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.count = 0

    def __call__(self) -> None:
        with self._condition:
            self.count += 1
            self._condition.notify_all()

    def hears(self, count: int) -> bool:
        with self._condition:
            return self._condition.wait_for(lambda: self.count >= count, timeout=20)
