"""SQLite connections: durable, in WAL mode, with Holdfast's SQL functions; checkpoints of the log.

The checkpoints keep the write-ahead log short where constant reads would let it grow without end.
"""

from __future__ import annotations

import errno
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
# The time for which the writer waits for readers to leave the log.
CHECKPOINT_MILLISECONDS = 200
_GROWTH = LOG_LIMIT // 4
# In earlier versions two processes that checkpoint at once can corrupt a WAL database.
SAFE_VERSION = (3, 51, 3)
# SQLite gives the log and its index the mode of the file.
FILE_MODE = 0o600
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
KIBIBYTE = 1024
CACHE_BYTES = 64 * MEBIBYTE
# SQLite's own checkpoints come before the log reaches LOG_LIMIT.
CHECKPOINT_PAGES = LOG_LIMIT * 3 // 4 // (4 * KIBIBYTE)


class Checkpoints:
    """Checkpoints that wait for readers; SQLite's own never do, and never restart a log in use."""

    def __init__(self) -> None:
        self._due = LOG_LIMIT

    def step(self, connection: apsw.Connection) -> None:
        """Empty the log if it is too long; a log that readers need is tried again when it grows."""
        size = _log_size(connection)
        if size <= LOG_LIMIT:
            self._due = LOG_LIMIT
        if size <= self._due:
            return
        connection.set_busy_timeout(CHECKPOINT_MILLISECONDS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            # Nothing depends on a checkpoint; if the disk fails, the next transaction fails.
            logger.debug("cannot empty the write-ahead log: %s", error)
        finally:
            connection.set_busy_timeout(0)
        self._due = max(LOG_LIMIT, _log_size(connection) + _GROWTH)


def _log_size(connection: apsw.Connection) -> int:
    try:
        # SQLite's own path: the log is not beside a link to the file. `os.stat` is the fastest way.
        return os.stat(connection.filename_wal).st_size  # noqa: PTH116
    except FileNotFoundError:
        return 0


def refuse_unsafe_version(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:3]) < SAFE_VERSION:
        wanted = ".".join(map(str, SAFE_VERSION))
        raise UnsafeSqlite(
            f"SQLite {version} can corrupt a database that two processes write to; "
            f"install an apsw that carries SQLite {wanted} or later"
        )


def create_file(path: Path) -> None:
    """Make the file if it does not exist, for its owner alone: it has the store's secret."""
    # If the file cannot be made, `connect` says why.
    with suppress(OSError):
        _create_file(path)


def _create_file(path: Path) -> None:
    # The path is resolved: the target of a link may not exist yet.
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
        # Without SQLITE_OPEN_CREATE: an empty store must not take the place of one that is gone.
        flags = apsw.SQLITE_OPEN_READWRITE
        connection = apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=500)
    except apsw.CantOpenError as error:
        raise _describe_unopened(path) from error
    try:
        _configure(connection, path, read_only=read_only)
        connection.create_scalar_function("holdfast_now", lambda *_: clock.now(), 0)
        connection.create_scalar_function("holdfast_within", _has_all_tags, 2, deterministic=True)
    except apsw.CantOpenError as error:
        connection.close()
        raise _describe_unopened(path) from error
    except apsw.NotADBError as error:
        connection.close()
        raise StoreError(f"{path} is not a SQLite database; name another file") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _describe_unopened(path: Path) -> StoreError:
    return StoreError(f"{path} cannot be opened as a SQLite database; {_hint(path)}")


def _hint(path: Path) -> str:
    try:
        if path.is_dir():
            return "it is a folder: name a file in it"
        if path.exists():
            beside = os.access(path.absolute().parent, os.W_OK)
            alone = "its folder is read-only, and SQLite keeps files beside it: copy it elsewhere"
            return "may you read and write it?" if beside else alone
        # Tried once more, for its reason: SQLite does not tell it.
        _create_file(path)
    except FileNotFoundError:
        return "does its folder exist?"
    except OSError as error:
        if error.errno in _READ_ONLY:
            return f"its folder is read-only ({error.strerror}): name a file in another one"
        return str(error.strerror)
    return "it is there now, so ask again"


def _configure(connection: apsw.Connection, path: Path, *, read_only: bool) -> None:
    # The driver waits itself, with jitter: with SQLite's busy handler waiters retry in step.
    connection.set_busy_timeout(0)
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system does not let SQLite use WAL (it offers {mode!r})"
        )
    connection.pragma("synchronous", "FULL")
    # When the log is restarted, the file is cut to this size.
    connection.pragma("journal_size_limit", LOG_LIMIT)
    # Rarer than by default, so that a page that changes often is copied once for many changes.
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    connection.pragma("foreign_keys", True)  # noqa: FBT003
    connection.pragma("temp_store", "MEMORY")
    # The default of 2 MB holds a few thousand tasks; beyond that, each task is read from the file.
    connection.pragma("cache_size", -(CACHE_BYTES // KIBIBYTE))
    connection.pragma("query_only", read_only)
    # Otherwise a statement is planned anew whenever its parameters change.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def _has_all_tags(*arguments: apsw.SQLiteValue) -> bool:
    """Whether all tags of a task are among the tags of a worker."""
    tags, offered = arguments
    return tags == "[]" or _parse_tags(tags) <= _parse_tags(offered)


@lru_cache(maxsize=1024)
def _parse_tags(tags: apsw.SQLiteValue) -> frozenset[str]:
    return frozenset(json.loads(str(tags)))
