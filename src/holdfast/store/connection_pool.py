"""A connection pool: so many connections and no more; threads that want one get it in turn."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from holdfast.clock import Clock
from holdfast.errors import StoreUnreachable, WrongThread
from holdfast.threads import ThreadEvent, Threads

C = TypeVar("C")
logger = logging.getLogger(__name__)

# The seconds after which a wait is told, and between two lines about such waits.
LONG_WAIT = 1.0
TELL_EVERY = 60.0
# The connections of a process that are no part of a pool: that of the writer, and the one that
# listens on PostgreSQL.
OUTSIDE_POOLS = 2


@dataclass(frozen=True, kw_only=True)
class PoolSizes:
    """How many connections views, and transactions beside the writer's, may have each.

    They are apart, because whoever has a transaction open may look at the store as well.
    """

    views: int
    transactions: int

    @classmethod
    def of(cls, connections: int) -> PoolSizes:
        left = connections - OUTSIDE_POOLS
        return cls(views=left - left // 2, transactions=left // 2)


class _Turn(Generic[C]):
    """A thread that waits; it is given a connection, or leave to open one."""

    __slots__ = ("came", "connection", "given")

    def __init__(self, came: ThreadEvent) -> None:
        self.came = came
        self.given = False
        self.connection: C | None = None


class ConnectionPool(Generic[C]):
    """Opens up to `most` connections, and keeps those that are at rest."""

    def __init__(  # noqa: PLR0913 - how a connection is opened, judged and closed, and how many
        self,
        connect: Callable[[], C],
        *,
        close: Callable[[C], None],
        usable: Callable[[C], bool],
        threads: Threads,
        clock: Clock,
        most: int,
        patience: float,
        what: str,
        refuses_holders: bool = False,
    ) -> None:
        self._connect = connect
        self._close = close
        self._usable = usable
        self._threads = threads
        self._clock = clock
        self._most = most
        self._patience = patience
        self._what = what
        # Whether a thread that has a connection is refused another one, for which it would wait.
        self._refuses_holders = refuses_holders
        self._holders: dict[C, int] = {}
        self._lock = threads.lock()
        self._idle: list[C] = []
        # Who let an application's code have a connection, which may have changed its settings.
        self._borrowers: dict[C, object] = {}
        self._turns: deque[_Turn[C]] = deque()
        # How many are open or being opened.
        self._open = 0
        self._told_at = -inf
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[C]:
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self, *, fresh: bool = False, borrower: object = None) -> C:
        """A connection for the caller alone, until `give_back`; with `fresh`, one just opened.

        A `borrower` lets an application's code have it: nobody else ever gets that connection.
        """
        connection = self._take_turn(borrower)
        try:
            if connection is not None:
                if not fresh and self._borrowers.get(connection, borrower) is borrower:
                    return self._note_taken(connection, borrower)
                self._close_open(connection)
            return self._note_taken(self._connect(), borrower)
        except BaseException:
            self._pass_on(None)
            raise

    def give_back(self, connection: C, *, keep: bool = True) -> None:
        self._holders.pop(connection, None)
        if keep and not self._closed and self._usable(connection):
            self._pass_on(connection)
            return
        try:
            self._close_open(connection)
        finally:
            self._pass_on(None)

    def discard(self) -> None:
        """Close the idle connections: where one connection broke, the others are likely broken."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._open -= len(idle)
        for connection in idle:
            self._close_open(connection)

    def close(self) -> None:
        self._closed = True
        self.discard()

    def _take_turn(self, borrower: object) -> C | None:
        """Wait for this thread's turn: an open connection, or None where one may be opened."""
        with self._lock:
            if not self._turns:
                if (idle := self._choose_idle(borrower)) is not None:
                    self._idle.remove(idle)
                    return idle
                if self._open < self._most:
                    self._open += 1
                    return None
            if self._refuses_holders and threading.get_ident() in self._holders.values():
                raise WrongThread(f"{self._describe()} are in use, {_HOLDER_ADVICE}")
            turn = _Turn[C](self._threads.event())
            self._turns.append(turn)
        try:
            came = turn.came.wait(min(LONG_WAIT, self._patience))
            if not came and self._patience > LONG_WAIT:
                self._tell_of_wait()
                turn.came.wait(self._patience - LONG_WAIT)
        except BaseException:
            self._give_up(turn)
            if turn.given:
                self._pass_on(turn.connection)
            raise
        self._give_up(turn)
        if not turn.given:
            raise StoreUnreachable(
                f"{self._describe()} are in use, and none was given back within "
                f"{self._patience:g} s; {_ADVICE}"
            )
        return turn.connection

    def _choose_idle(self, borrower: object) -> C | None:
        """The connection that the borrower had before, or one that no borrower had.

        Of several the one used last is taken, so that few go stale. What another borrower had is
        taken, to be replaced, only where none may be opened beside it.
        """
        for wanted in (borrower, None):
            for connection in reversed(self._idle):
                if self._borrowers.get(connection) is wanted:
                    return connection
        return self._idle[-1] if self._idle and self._open >= self._most else None

    def _note_taken(self, connection: C, borrower: object) -> C:
        self._holders[connection] = threading.get_ident()
        if borrower is not None:
            self._borrowers[connection] = borrower
        return connection

    def _close_open(self, connection: C) -> None:
        self._borrowers.pop(connection, None)
        self._close(connection)

    def _give_up(self, turn: _Turn[C]) -> None:
        with self._lock:
            if not turn.given:
                self._turns.remove(turn)

    def _pass_on(self, connection: C | None) -> None:
        """Give a connection, or leave to open one, to the thread that has waited longest."""
        with self._lock:
            if self._turns:
                turn = self._turns.popleft()
                turn.given, turn.connection = True, connection
                turn.came.set()
                return
            if connection is None:
                self._open -= 1
                return
            if not self._closed:
                self._idle.append(connection)
                return
            self._open -= 1
        self._close_open(connection)

    def _tell_of_wait(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            waiting = len(self._turns)
            told, self._told_at = self._told_at, max(self._told_at, now)
            if now < told + TELL_EVERY:
                self._told_at = told
                return
        logger.warning(
            "%s are in use: %d threads wait in turn, one of them for %g s by now; %s",
            self._describe(),
            waiting,
            LONG_WAIT,
            _ADVICE,
        )

    def _describe(self) -> str:
        return f"all {self._most} connections for {self._what} of this process"


_ADVICE = "give them back sooner, or have more: the setting `connections` says how many"
_HOLDER_ADVICE = (
    "and this thread has one of them open already: those who wait like this would wait for each "
    "other; use its connection for both, begin the second after the first has ended, or have more: "
    "the setting `connections` says how many"
)
