"""A PostgreSQL transaction: named statements, sent without waiting for unneeded answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from holdfast.clock import Clock
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import (
    Query,
    Rows,
    bind_parameters,
    require_counted,
    require_plain,
    require_transition,
)
from holdfast.store.sql_text.transitions import CommitProof

_READ_XID = "SELECT CAST(pg_current_xact_id_if_assigned() AS text)"
_SET_TIME = "SELECT set_config('holdfast.now', %(now)s, false)"


class StatementAnswer(Protocol):
    def rows(self) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """Wait for the answer to a statement: the names of its columns, and its rows."""


class StatementSender(Protocol):
    """The port to a connection: a session of the store, or an application's connection."""

    def execute(self, text: str, parameters: Mapping[str, object] = ...) -> StatementAnswer: ...


class PostgresqlTransaction:
    """Sends statements, and waits only for answers that a caller needs."""

    def __init__(self, session: StatementSender, known: Mapping[str, Query], clock: Clock) -> None:
        self._session = session
        self._queries = known
        self._clock = clock
        self._time_set: int | None = None
        self._xid: str | None = None
        self._may_have_written = False
        self.proof: CommitProof | None = None

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return _make_rows(self._send(query, rows, parameters))

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        known = require_transition(self._queries[query])
        names, found = self._execute(known, rows, parameters).rows()
        if not found:
            return []
        # The last column of a transition is the transaction's id.
        self._xid = found[-1][-1]
        returned = names[:-1]
        changed: list[Row] = [dict(zip(returned, row, strict=False)) for row in found]
        self.proof = CommitProof.of(changed[-1])
        return changed

    def insert(self, query: str, /, *, rows: Rows) -> Callable[[], int]:
        answer = self._execute(require_counted(self._queries[query]), rows, {})
        return lambda: self._count(answer)

    def _count(self, answer: StatementAnswer) -> int:
        _, found = answer.rows()
        if not found:
            return 0
        ((inserted, entity, version, at, kind, self._xid),) = found
        self.proof = CommitProof(entity=entity, version=version, at=at, type=kind)
        return int(inserted)

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return _make_rows(self._send(query, rows, parameters))

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._send(query, rows, parameters)

    def xid(self) -> str | None:
        """Wait for the transaction's id; None when nothing was written."""
        # A transition has returned the id already; reads and locks alone leave nothing to commit.
        if self._xid is None and self._may_have_written:
            ((self._xid,),) = self._session.execute(_READ_XID).rows()[1]
        return self._xid

    def _send(
        self, query: str, rows: Rows | None, parameters: dict[str, object]
    ) -> StatementAnswer:
        known = require_plain(self._queries[query])
        self._may_have_written |= not known.text.startswith("SELECT")
        return self._execute(known, rows, parameters)

    def _execute(
        self, query: Query, rows: Rows | None, parameters: dict[str, object]
    ) -> StatementAnswer:
        bound = bind_parameters(query, rows, parameters)
        if self._clock.manual and self._time_set != (now := self._clock.now()):
            self._session.execute(_SET_TIME, {"now": str(now)})
            self._time_set = now
        return self._session.execute(query.text, bound)


def _make_rows(answer: StatementAnswer) -> list[Row]:
    names, rows = answer.rows()
    return [dict(zip(names, row, strict=True)) for row in rows]
