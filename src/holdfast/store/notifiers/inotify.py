"""Inotify: Linux reports when a file is written, whichever process writes it."""

from __future__ import annotations

import ctypes
import errno
import os
import select
from contextlib import suppress
from math import ceil

IN_MODIFY = 0x2
MILLISECONDS = 1_000
# Reports of writes that were not read yet are merged, so there is hardly ever more than this.
BUFFER = 4096


class Inotify:
    """A watch on one path: a file that takes the place of another is watched soon after."""

    reports_writes = True

    def __init__(self, path: str) -> None:
        self._path = path.encode()
        self._library = ctypes.CDLL(None, use_errno=True)
        self._watched = -1
        self._file = self._checked(self._library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        self._wake_event = -1
        try:
            self._wake_event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._watch_path()
        except BaseException:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._poll.register(self._wake_event, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        ready = [number for number, _ in self._poll.poll(ceil(seconds * MILLISECONDS))]
        if self._wake_event in ready:
            os.eventfd_read(self._wake_event)
        if self._file in ready:
            # A report is about the one file, or says that reports were lost; both mean a write.
            os.read(self._file, BUFFER)
            return True
        return not ready and seconds > 0 and self._watch_replacement()

    def wake(self) -> None:
        os.eventfd_write(self._wake_event, 1)

    def close(self) -> None:
        for number in (self._file, self._wake_event):
            if number >= 0:
                os.close(number)
        self._file = self._wake_event = -1

    def _watch_replacement(self) -> bool:
        """Watch the file that is at the path now; True if it is another file than before."""
        before = self._watched
        with suppress(OSError):
            self._watch_path()
        return self._watched != before

    def _watch_path(self) -> None:
        # Inotify gives the same number for the same file.
        add = self._library.inotify_add_watch
        watched = self._checked(add(self._file, self._path, IN_MODIFY))
        if self._watched not in {watched, -1}:
            self._library.inotify_rm_watch(self._file, self._watched)
        self._watched = watched

    def _checked(self, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno() or errno.EINVAL
            raise OSError(number, os.strerror(number))
        return answer
