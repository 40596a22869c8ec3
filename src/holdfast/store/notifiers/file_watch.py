"""The port to whatever tells that a file was written, and what there is where nothing does."""

from __future__ import annotations

import logging
import sys
from typing import Protocol

from holdfast.threads import Threads

logger = logging.getLogger(__name__)


class FileWatch(Protocol):
    @property
    def reports_writes(self) -> bool:
        """Whether it ever says that the file was written."""

    def wait(self, seconds: float) -> bool:
        """Wait until the file has been written since the last wait, or the time is up."""

    def wake(self) -> None:
        """End a wait in another thread, or the next one."""

    def close(self) -> None: ...


class NoWatch:
    """Only lets the time pass."""

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
        # Imported here: it takes its time, and many a command waits for nobody.
        try:
            from holdfast.store.notifiers.inotify import Inotify  # noqa: PLC0415

            return Inotify(path)
        except (ImportError, AttributeError, OSError) as error:
            # The system has as many as it allows, or none at all.
            logger.debug("%s is looked at by turns, it cannot be watched: %s", path, error)
    return NoWatch(threads)
