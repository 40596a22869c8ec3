"""How a SQLite connection is opened: durable, in WAL mode, with Holdfast's SQL functions.

Keeps the write-ahead log short where readers that never pause would let it grow without end.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import apsw

from holdfast.clock import Clock
from holdfast.errors import StoreError, UnsafeSqlite
from holdfast.settings import MEBIBYTE

logger = logging.getLogger(__name__)

LOG_LIMIT = 16 * MEBIBYTE
# As long as a writer may be kept waiting for readers to leave the log.
CHECKPOINT_MILLISECONDS = 200
_GROWTH = LOG_LIMIT // 4


class Checkpoints:
    """SQLite's own checkpoints never wait, and so never begin the log anew under constant reads."""

    def __init__(self) -> None:
        self._due = LOG_LIMIT

    def step(self, connection: apsw.Connection) -> None:
        """Empty the log if it is too long; one that readers still need is tried again later."""
        size = _log_size(connection)
        if size <= LOG_LIMIT:
            self._due = LOG_LIMIT
        if size <= self._due:
            return
        connection.set_busy_timeout(CHECKPOINT_MILLISECONDS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            # Nothing depends on it; a disk that fails says so to the next transaction.
            logger.debug("cannot empty the write-ahead log: %s", error)
        finally:
            connection.set_busy_timeout(0)
        self._due = max(LOG_LIMIT, _log_size(connection) + _GROWTH)


def _log_size(connection: apsw.Connection) -> int:
    try:
        # Where SQLite has it: not beside a link to the file. Before every transaction, so quickly.
        return os.stat(connection.filename_wal).st_size  # noqa: PTH116
    except FileNotFoundError:
        return 0


# Before this version two processes that checkpoint at once can corrupt a WAL database.
SAFE_VERSION = (3, 51, 3)
# The log and its index beside the file get the same from SQLite.
FILE_MODE = 0o600
KIBIBYTE = 1024
CACHE_BYTES = 64 * MEBIBYTE
# Short of where its length is looked at.
CHECKPOINT_PAGES = LOG_LIMIT * 3 // 4 // (4 * KIBIBYTE)


def refuse_unsafe_version(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:3]) < SAFE_VERSION:
        wanted = ".".join(map(str, SAFE_VERSION))
        raise UnsafeSqlite(
            f"SQLite {version} can corrupt a database that two processes write to; "
            f"install an apsw that carries SQLite {wanted} or later"
        )


def create_file(path: Path) -> None:
    """Make the file, if it is not there, for its owner alone: it holds the store's secret."""
    # Whatever is wrong with the place, SQLite says it when it opens the file.
    with suppress(OSError):
        # Where a link leads there may be nothing yet.
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        file = os.open(path.resolve(), flags, FILE_MODE)
        try:
            os.fchmod(file, FILE_MODE)
        finally:
            os.close(file)


def connect(
    path: Path, clock: Clock, *, read_only: bool = False, vfs: str | None = None
) -> apsw.Connection:
    try:
        # Never made here: in the place of a store that is gone there would be an empty one.
        flags = apsw.SQLITE_OPEN_READWRITE
        connection = apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=500)
    except apsw.CantOpenError as error:
        raise StoreError(f"{path} cannot be opened as a SQLite database; {_hint(path)}") from error
    try:
        _configure(connection, path, read_only=read_only)
        connection.create_scalar_function("holdfast_now", lambda *_: clock.now(), 0)
        connection.create_scalar_function("holdfast_within", _has_all_tags, 2, deterministic=True)
    except apsw.NotADBError as error:
        connection.close()
        raise StoreError(f"{path} is not a SQLite database; name another file") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _hint(path: Path) -> str:
    try:
        if path.is_dir():
            return "it is a folder: name a file in it"
        return "may you read and write it?" if path.exists() else "does its folder exist?"
    except OSError as error:
        return str(error.strerror)


def _configure(connection: apsw.Connection, path: Path, *, read_only: bool) -> None:
    # The driver waits by itself, with jitter: SQLite's own handler makes waiters march in step.
    connection.set_busy_timeout(0)
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system does not let SQLite use WAL (it offers {mode!r})"
        )
    connection.pragma("synchronous", "FULL")
    # A log that grew and could begin anew gives its space back.
    connection.pragma("journal_size_limit", LOG_LIMIT)
    # Rarer than by default, so that a page that changes again and again is copied once for all.
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    connection.pragma("foreign_keys", True)  # noqa: FBT003
    connection.pragma("temp_store", "MEMORY")
    # SQLite's own 2 MB hold a few thousand tasks; beyond, every look at one is a read of the file.
    connection.pragma("cache_size", -(CACHE_BYTES // KIBIBYTE))
    connection.pragma("query_only", read_only)
    # Otherwise a statement is planned anew whenever what is bound to it changes.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def _has_all_tags(*arguments: apsw.SQLiteValue) -> bool:
    """Tell whether all tags of a task are among those a worker offers."""
    tags, offered = arguments
    return tags == "[]" or _parse_tags(tags) <= _parse_tags(offered)


@lru_cache(maxsize=1024)
def _parse_tags(tags: apsw.SQLiteValue) -> frozenset[str]:
    return frozenset(json.loads(str(tags)))
