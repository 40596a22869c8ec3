"""What others have committed to a SQLite file, as the connection sees it that writes here."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import apsw

from holdfast.threads import Lock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CommitsSeen:
    """Who has committed since the last look: other connections, and the one that writes here.

    Of one that is `writing` it is not told before it has ended, and nobody else can write.
    """

    others: bool = False
    own: bool = False
    writing: bool = False


class ForeignCommits:
    """Tells the commits of others from those of the one connection that writes for this process.

    To any other connection of the process both look the same. Whoever uses the writer's has the
    lock meanwhile, so a look never waits for a transaction, which notes itself what came before it.
    """

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self._connection: apsw.Connection | None = None
        self._version = 0
        self._changes = 0
        self._others = False
        self._own = False
        self._begun = False

    def begin_transaction(self, connection: apsw.Connection) -> None:
        """In a transaction that nobody else can write beside: what has come before it."""
        self._begun = True
        if connection.data_version() != self._version:
            self._others = True

    def end_transaction(self, connection: apsw.Connection | None) -> None:
        """After a transaction, or on a new connection, which cannot tell what came before it."""
        begun, self._begun = self._begun, False
        if connection is None:
            self._connection = None
            return
        if connection is not self._connection:
            self._connection, self._changes, self._others = connection, 0, True
        elif not begun:
            # One that could not begin has seen all the same what was committed before it.
            self._others |= connection.data_version() != self._version
        # It counts the connection's own commits too, and so is read after each of them.
        self._version = connection.data_version()
        changes = connection.total_changes()
        if changes != self._changes:
            self._changes, self._own = changes, True

    def look(self) -> CommitsSeen:
        if not self.lock.acquire(blocking=False):
            return CommitsSeen(own=True, writing=True)
        try:
            if self._connection is not None:
                self._read(self._connection)
            seen = CommitsSeen(others=self._others, own=self._own)
            self._others = self._own = False
            return seen
        finally:
            self.lock.release()

    def _read(self, connection: apsw.Connection) -> None:
        try:
            # Any read has the connection find out what is new; this one reads nothing besides.
            connection.execute("PRAGMA data_version").fetchall()
            version = connection.data_version()
        except apsw.Error:
            # Busy while the file is recovered or checkpointed away; the next look will tell.
            logger.debug("cannot look at the data version", exc_info=True)
            return
        if version != self._version:
            self._version, self._others = version, True
