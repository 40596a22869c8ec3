"""Dies by SIGKILL at a statement, counted where statements leave for the database."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import apsw
from psycopg.pq.abc import PGresult

from holdfast.store.postgresql.pipeline import Pipeline, PipelineAnswer
from holdfast.store.postgresql.statement import Statement, Types, Values, number_parameters

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
    send, drain = Pipeline.send, Pipeline.drain

    def watched_send(
        wire: Pipeline, statement: Statement, types: Types, values: Values
    ) -> PipelineAnswer:
        boundary.before(
            statement.text.decode(),
            lambda: send(wire, number_parameters("SELECT 1"), (), []).rows(),
        )
        return send(wire, statement, types, values)

    def watched_drain(wire: Pipeline) -> PGresult | None:
        error = drain(wire)
        boundary.after_commit()
        return error

    # Assigned by name: to a type checker a method is no place to put another.
    setattr(Pipeline, "send", watched_send)  # noqa: B010
    setattr(Pipeline, "drain", watched_drain)  # noqa: B010
