"""File identity: whether the file that a SQLite store was opened in is still at its path.

A process can go on writing to a file that was removed or replaced, and SQLite does not tell. So the
path is looked at after each commit, before anybody hears of it, by three `stat`. No other
file descriptor is opened for it: to close one would drop the locks of SQLite on the file.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

import apsw

from holdfast.clock import Clock
from holdfast.errors import StoreError, StoreGone
from holdfast.store.sqlite.saved_copy import (
    describe_restore,
    read_identities,
    save_copy,
    save_copy_again,
)
from holdfast.threads import Threads

logger = logging.getLogger("holdfast.store")

# After a copy could not be written, the disk being full above all, it is tried again.
RETRY_SECONDS = 5.0
# Whoever removes a whole folder may come to the copy as well: so long it must have been there.
SETTLING_SECONDS = 1.0
CHECK_SECONDS = 0.05
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)

_FileIds = tuple[int, int, int, int, int, int]


class FileIdentity:
    """The device and inode of a store's file, of its log and of the log's index.

    It has a connection of its own, which is read only when what is open has to be saved.
    """

    def __init__(self, path: Path, clock: Clock, threads: Threads) -> None:
        self._path = path
        self._clock = clock
        self._lock = threads.lock()
        self._connection: apsw.Connection | None = None
        self._files = ("", "", "")
        self._known: _FileIds | None = None
        self._identities = b""
        self._message = ""
        self._copy: Path | None = None
        self._retry_at = self._checked_at = -inf
        self._listeners: list[Callable[[StoreGone], None]] = []
        # Whether it was found to be gone, which stays so.
        self.lost = False

    def begin(self, connect: Callable[[], apsw.Connection]) -> None:
        """Open the file, and remember which it is."""
        connection = connect()
        try:
            # From its first read on, a connection keeps others from removing the log as they leave.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            connection.close()
            raise
        log = connection.filename_wal
        self._files = (str(self._path), log, f"{log.removesuffix('-wal')}-shm")
        self._known = self._read_ids()
        self._identities = read_identities(self._path)
        self._connection = connection
        self.verify_connection(connection)

    def check(self) -> None:
        """Refuse to go on where the file at the path is not the one that is open."""
        self._checked_at = self._clock.monotonic()
        if self.lost or self._read_ids() != self._known:
            self._raise_gone()

    def check_when_due(self) -> None:
        """The same, unless somebody has looked just now: a look gives the interpreter away."""
        since = self._clock.monotonic() - self._checked_at
        if self.lost or not 0 < since < CHECK_SECONDS:
            self.check()

    def verify_connection(self, connection: apsw.Connection) -> None:
        """Refuse a connection that was just opened, and has another file than the others."""
        moved = ctypes.c_int(0)
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        if moved.value or self._known is None:
            self._raise_gone()
        self.check()

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Call back once what was in the file is saved: whoever hears of it may end the process."""
        with self._lock:
            gone = self._copy is not None
            if not gone:
                self._listeners.append(callback)
        if gone:
            callback(self._error())

        def remove() -> None:
            with self._lock, suppress(ValueError):
                self._listeners.remove(callback)

        return remove

    def close(self) -> None:
        """Let go of the file; of one that is gone only once its copy is sure to stay."""
        if self._connection is None:
            return
        with suppress(StoreGone):
            self.check()
        if self.lost:
            self._guard_copy(self._connection)
        self.close_connection(self._connection)

    def close_connection(self, connection: apsw.Connection) -> None:
        """Without a checkpoint where the file is gone: others may have it with another log."""
        if self.lost:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _read_ids(self) -> _FileIds | None:
        """What has the names now; None where one of them has nothing."""
        file, log, index = self._files
        try:
            # Before every answer, so quickly.
            one, two, three = os.stat(file), os.stat(log), os.stat(index)  # noqa: PTH116
        except OSError as error:
            # Whoever may not look into the folder any more cannot tell.
            return None if error.errno in _MISSING else self._known
        return (one.st_ino, one.st_dev, two.st_ino, two.st_dev, three.st_ino, three.st_dev)

    def _raise_gone(self) -> None:
        # First: what is acknowledged was committed before it, and so is in the copy.
        self.lost = True
        with self._lock:
            self._save()
            error = self._error()
            saved = self._copy is not None
            listeners, self._listeners = (self._listeners, []) if saved else ([], self._listeners)
        for callback in listeners:
            callback(error)
        raise error

    def _error(self) -> StoreGone:
        return StoreGone(self._message, self._copy)

    def _save(self) -> None:
        now = self._clock.monotonic()
        if self._copy is not None or now < self._retry_at or self._connection is None:
            return
        self._retry_at = now + RETRY_SECONDS
        gone = f"the file of the store is gone: {self._path} was removed or replaced while open"
        try:
            self._copy = save_copy(self._connection, self._path, self._identities)
        except StoreError as error:
            self._message = (
                f"{gone}; what was in it cannot be saved, and is lost when this process ends; "
                f"make room for it, it is tried again: {error}"
            )
        else:
            command = describe_restore(self._copy, self._path)
            self._message = (
                f"{gone}; all that was acknowledged is saved in {self._copy}; once no process has "
                f"that path open any more, `{command}` brings it back"
            )
        logger.error("%s", self._message)

    def _guard_copy(self, source: apsw.Connection) -> None:
        """Write the copy again where somebody removes it who is still removing the folder."""
        with self._lock:
            self._retry_at = -inf
            self._save()
        until = self._clock.monotonic() + SETTLING_SECONDS
        while self._copy is not None and self._clock.monotonic() < until:
            if not self._copy.exists():
                try:
                    save_copy_again(source, self._copy, self._identities)
                except StoreError as error:
                    logger.error("%s", error)  # noqa: TRY400 - the error says it all
                until = self._clock.monotonic() + SETTLING_SECONDS
            self._clock.sleep(CHECK_SECONDS)
