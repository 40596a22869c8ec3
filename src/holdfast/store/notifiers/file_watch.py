"""The port to a watch on a file, and the watch for systems that cannot report writes."""

from __future__ import annotations

import logging
import sys
from typing import Protocol

from holdfast.threads import Threads

logger = logging.getLogger(__name__)


class FileWatch(Protocol):
    @property
    def reports_writes(self) -> bool:
        """Whether this watch can report that the file was written."""

    def wait(self, seconds: float) -> bool:
        """Wait until the file has been written since the last wait, or the time is up."""

    def wake(self) -> None:
        """End the wait in another thread, or else the next wait."""

    def close(self) -> None: ...


class NoWatch:
    """A watch that reports nothing, and only lets the time pass."""

    reports_writes = False

    def __init__(self, threads: Threads) -> None:
        self._woken = threads.event()

    def wait(self, seconds: float) -> bool:
        self._woken.wait(seconds)
        return False

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        pass


def open_watch(path: str, threads: Threads) -> FileWatch:
    if sys.platform == "linux":
        # Imported here, because the import is slow and many commands watch nothing.
        try:
            from holdfast.store.notifiers.inotify import Inotify  # noqa: PLC0415

            return Inotify(path)
        except (ImportError, AttributeError, OSError) as error:
            # The system allows no more watches, or has no inotify.
            logger.debug("%s is looked at by turns, it cannot be watched: %s", path, error)
    return NoWatch(threads)
