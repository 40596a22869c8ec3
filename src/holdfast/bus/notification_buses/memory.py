"""Notifications inside one process: the implementation of the port without any other process."""

from __future__ import annotations

from holdfast.bus.notification_bus import NotificationBus
from holdfast.threads import SystemThreads, Threads


class MemoryNotificationBus(NotificationBus):
    def __init__(self, threads: Threads | None = None) -> None:
        super().__init__(threads or SystemThreads())

    def _send(self, text: str) -> bool:  # noqa: ARG002 - there is nobody else
        return True

    def start(self) -> None:
        self.listening.set()

    def close(self) -> None:
        self.listening.clear()
