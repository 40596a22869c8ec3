"""Foreign commits: those of other connections to a SQLite file than the writer's."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import apsw

from holdfast.threads import Lock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CommitsSeen:
    """The commits since the last look: of other connections, and of the writer's own.

    While the writer is `writing`, nobody else can write, and its commit is told by a later look.
    """

    others: bool = False
    own: bool = False
    writing: bool = False


class ForeignCommits:
    """Tells the commits of other connections from those of the writer's connection.

    Only the writer's connection can tell them apart. Whoever uses that connection holds the lock,
    and a look does not wait for it: a transaction notes itself what was committed before it.
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
        """Note, at the start of a write transaction, what others have committed before it."""
        self._begun = True
        if connection.data_version() != self._version:
            self._others = True

    def end_transaction(self, connection: apsw.Connection | None) -> None:
        """Note what was committed, after a transaction or on a new connection.

        A new connection cannot tell what was committed before it, so that counts as foreign.
        """
        begun, self._begun = self._begun, False
        if connection is None:
            self._connection = None
            return
        if connection is not self._connection:
            self._connection, self._changes, self._others = connection, 0, True
        elif not begun:
            # A transaction that could not begin has seen the commits before it all the same.
            self._others |= connection.data_version() != self._version
        # The data version counts the connection's own commits too, so it is read after each.
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
            # Any read brings the data version up to date; this one reads nothing else.
            connection.execute("PRAGMA data_version").fetchall()
            version = connection.data_version()
        except apsw.Error:
            # The file is busy while it is recovered or checkpointed; the next look will tell.
            logger.debug("cannot look at the data version", exc_info=True)
            return
        if version != self._version:
            self._version, self._others = version, True
