"""Dies by SIGKILL at a statement, counted where statements go to the database's own driver."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import apsw
import psycopg

COMMIT = "COMMIT"


class Boundary:
    """Counts the statements of this process once it is armed, and dies before the chosen one.

    The place behind the last statement is right after its COMMIT, before anyone is told.
    """

    def __init__(self, place: int | None, report: Connection) -> None:
        self._place = place
        self._report = report
        self._passed = 0
        self._last = ""
        self.armed = False

    def before(self, statement: str, settle: Callable[[], object] = lambda: None) -> None:
        if not self.armed:
            return
        if self._passed == self._place:
            self.armed = False
            # What was given to a pipeline has to have reached the server by now.
            settle()
            die()
        self._report.send(statement)
        self._passed += 1
        self._last = statement

    def after_commit(self) -> None:
        if self.armed and self._passed == self._place and self._last == COMMIT:
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def watch(boundary: Boundary) -> None:
    """See every statement that this process will ever send, on any connection."""
    apsw.connection_hooks.append(lambda connection: _watch_sqlite(boundary, connection))
    _watch_postgresql(boundary)


def _watch_sqlite(boundary: Boundary, connection: apsw.Connection) -> None:
    def notice(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_STMT:
            if not event["trigger"]:
                boundary.before(event["sql"])
        else:
            boundary.after_commit()

    connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, notice)


def _watch_postgresql(boundary: Boundary) -> None:
    execute, sync = psycopg.Connection.execute, psycopg.Pipeline.sync

    def watched_execute(
        connection: psycopg.Connection[Any], query: bytes | str, *given: Any, **named: Any
    ) -> psycopg.Cursor[Any]:
        text = query.decode() if isinstance(query, bytes) else query
        boundary.before(text, lambda: execute(connection, "SELECT 1").fetchone())
        return execute(connection, query, *given, **named)

    def watched_sync(pipeline: psycopg.Pipeline) -> None:
        sync(pipeline)
        boundary.after_commit()

    # Assigned by name: to a type checker a method is no place to put another.
    setattr(psycopg.Connection, "execute", watched_execute)  # noqa: B010
    setattr(psycopg.Pipeline, "sync", watched_sync)  # noqa: B010
