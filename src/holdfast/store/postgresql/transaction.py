"""Named queries inside one pipelined PostgreSQL transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.clock import Clock
from holdfast.store.database import Row, Rows
from holdfast.store.parameters import bind, plain, transition
from holdfast.store.postgresql.session import Cursor
from holdfast.store.queries import Query
from holdfast.store.transitions import CARRIED, Mark

_IDENTITY = "SELECT CAST(pg_current_xact_id_if_assigned() AS text) AS xid"
_TELL_TIME = "SELECT set_config('holdfast.now', %s, false)"


class Carrier(Protocol):
    """Whatever statements can be sent through."""

    def execute(
        self, text: str, parameters: Mapping[str, object] | Sequence[object] | None = None
    ) -> Cursor: ...


class PostgresqlTransaction:
    """Sends statements without waiting for those whose answer nobody needs."""

    def __init__(self, session: Carrier, known: Mapping[str, Query], clock: Clock) -> None:
        self._session = session
        self._queries = known
        self._clock = clock
        self._told: int | None = None
        self._asked: Cursor | None = None
        self._xid: str | None = None
        self.mark: Mark | None = None

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._execute(plain(self._queries[query]), rows, parameters).fetchall()

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        known = transition(self._queries[query])
        changed = self._execute(known, rows, parameters).fetchall()
        for row in changed:
            self._xid = row.pop("xid")
        if known.carried:
            for row in changed:
                row[CARRIED] = known.carried, tuple([row.pop(name) for name in known.carried])
        if changed:
            self.mark = Mark.of(changed[-1])
        return changed

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        cursor = self._execute(plain(self._queries[query]), rows, parameters)
        self._ask()
        return cursor.fetchall()

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._execute(plain(self._queries[query]), rows, parameters)
        self._ask()

    def xid(self) -> str | None:
        """Wait for the transaction's id; None when nothing was written."""
        if self._xid is None:
            answer = (self._asked or self._session.execute(_IDENTITY)).fetchone()
            self._xid = answer["xid"] if answer else None
        return self._xid

    def _ask(self) -> None:
        if self._xid is None:
            # Travels with the statement, so that it costs no round trip of its own.
            self._asked = self._session.execute(_IDENTITY)

    def _execute(self, query: Query, rows: Rows | None, parameters: dict[str, object]) -> Cursor:
        # Whatever was asked before this statement, it may be the first that writes.
        self._asked = None
        bound = bind(query, rows, parameters)
        if self._clock.manual and self._told != (now := self._clock.now()):
            self._session.execute(_TELL_TIME, (str(now),))
            self._told = now
        return self._session.execute(query.text, bound)
