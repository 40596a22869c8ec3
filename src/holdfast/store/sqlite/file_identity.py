"""File identity: whether the file that a SQLite store was opened in is still at its path.

A process can go on writing to a file that was removed or replaced, and SQLite does not notice. So
the path is checked after each commit and before its replies, by three calls of `stat`. The file is
never opened for the check: closing a file descriptor would drop SQLite's locks on the file.
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

# The pause before a copy that could not be written, mostly for a full disk, is tried again.
RETRY_SECONDS = 5.0
# The time that a copy must have existed: whoever removes its whole folder may remove the copy too.
SETTLING_SECONDS = 1.0
CHECK_SECONDS = 0.05
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)

_FileIds = tuple[int, int, int, int, int, int]


class FileIdentity:
    """The device and inode of a store's file, of its log and of the log's index.

    The class has its own connection, from which the content is saved when the file is gone.
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
        # Whether the file was found to be gone; it stays so.
        self.lost = False

    def begin(self, connect: Callable[[], apsw.Connection]) -> None:
        """Open the file, and remember its device and inode."""
        connection = connect()
        try:
            # A connection that has read once keeps others from removing the log when they close.
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

    @property
    def locked_files(self) -> tuple[Path, Path]:
        """The file and the index of its log: what connections lock."""
        file, _, index = self._files
        return Path(file or self._path), Path(index)

    def check(self) -> None:
        """Refuse to go on where the file at the path is not the one that is open."""
        self._checked_at = self._clock.monotonic()
        if self.lost or self._read_ids() != self._known:
            self._raise_gone()

    def check_when_due(self) -> None:
        """Check, unless the last check was just now: `stat` hands over the interpreter's lock."""
        since = self._clock.monotonic() - self._checked_at
        if self.lost or not 0 < since < CHECK_SECONDS:
            self.check()

    def verify_connection(self, connection: apsw.Connection) -> None:
        """Refuse a new connection that has opened another file than the first one."""
        moved = ctypes.c_int(0)
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        if moved.value or self._known is None:
            self._raise_gone()
        self.check()

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Call `callback` when the file is gone and its content saved: the process may end then."""
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
        """Close the connection; if the file is gone, only once its copy is sure to stay."""
        if self._connection is None:
            return
        with suppress(StoreGone):
            self.check()
        if self.lost:
            self._guard_copy(self._connection)
        self.close_connection(self._connection)

    def close_connection(self, connection: apsw.Connection) -> None:
        """Close a connection, without a checkpoint if the file is gone: it may have another log."""
        if self.lost:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _read_ids(self) -> _FileIds | None:
        """The devices and inodes at the three paths; None where one of them has no file."""
        file, log, index = self._files
        try:
            # Called before every reply: `os.stat` is the fastest way.
            one, two, three = os.stat(file), os.stat(log), os.stat(index)  # noqa: PTH116
        except OSError as error:
            # Without the right to read the folder, nothing is known about the file.
            return None if error.errno in _MISSING else self._known
        return (one.st_ino, one.st_dev, two.st_ino, two.st_dev, three.st_ino, three.st_dev)

    def _raise_gone(self) -> None:
        # Set before the copy is written: what was acknowledged was committed before, and is in it.
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
        return StoreGone(self._message, saved=self._copy)

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
        """Write the copy again if it is removed by somebody who is removing the whole folder."""
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
