"""Keeps the write-ahead log short where readers that never pause would let it grow without end."""

from __future__ import annotations

import logging
import os

import apsw

from holdfast.settings import MEBIBYTE

logger = logging.getLogger(__name__)

LIMIT = 16 * MEBIBYTE
# As long as a writer may be kept waiting for readers to leave the log.
WAIT_MILLISECONDS = 200
_GROWTH = LIMIT // 4


class Checkpoints:
    """SQLite's own checkpoints never wait, and so never begin the log anew under constant reads."""

    def __init__(self) -> None:
        self._due = LIMIT

    def step(self, connection: apsw.Connection) -> None:
        """Empty the log if it is too long; one that readers still need is tried again later."""
        size = _size(connection)
        if size <= LIMIT:
            self._due = LIMIT
        if size <= self._due:
            return
        connection.set_busy_timeout(WAIT_MILLISECONDS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            # Nothing depends on it; a disk that fails says so to the next transaction.
            logger.debug("cannot empty the write-ahead log: %s", error)
        finally:
            connection.set_busy_timeout(0)
        self._due = max(LIMIT, _size(connection) + _GROWTH)


def _size(connection: apsw.Connection) -> int:
    try:
        # Where SQLite has it: not beside a link to the file. Before every transaction, so quickly.
        return os.stat(connection.filename_wal).st_size  # noqa: PTH116
    except FileNotFoundError:
        return 0
