"""A SQLite transaction: named statements, and the events of their changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

import apsw

from holdfast.clock import Clock
from holdfast.errors import StoreError
from holdfast.store.database import Contended, Row
from holdfast.store.sql_text.queries import (
    TIME_PARAMETER,
    Query,
    Rows,
    bind_parameters,
    encode,
    require_counted,
    require_plain,
    require_transition,
)
from holdfast.store.sql_text.transitions import (
    INSERT_EVENTS,
    RETURNED_COLUMNS,
    CommitProof,
)

EVENT_WIDTH = len(RETURNED_COLUMNS)
# The events of one statement: few sizes, so that each statement is prepared once and kept.
EVENTS_AT_ONCE = (64, 8, 1)
EVENT_INSERTS = {
    count: INSERT_EVENTS + ", ".join([f"({', '.join('?' * EVENT_WIDTH)})"] * count)
    for count in EVENTS_AT_ONCE
}


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The queries, and the names of their results' columns as far as they are known."""

    queries: Mapping[str, Query]
    columns: dict[str, tuple[str, ...]]
    clock: Clock


class SqliteTransaction:
    def __init__(self, connection: apsw.Connection, catalogue: Catalogue) -> None:
        self._connection = connection
        self._catalogue = catalogue
        # If the transaction was committed, the file has one of these events at least.
        self.proofs: list[CommitProof] = []
        self._failed = False

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._rows(require_plain(self._catalogue.queries[query]), rows, parameters)

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        known = require_transition(self._catalogue.queries[query])
        changed = self._rows(known, rows, parameters)
        if changed:
            self.proofs = [CommitProof.of(changed[-1])]
        return changed

    def read_late(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> Callable[[], list[Row]]:
        found = self.read(query, rows=rows, **parameters)
        return lambda: found

    def send_ahead(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        """Send nothing: there is no server to wait for."""

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        known = require_counted(self._catalogue.queries[query])
        connection = self._connection
        try:
            connection.execute(known.text, self._bind(known, rows, {}))
            inserted = connection.changes()
            if inserted:
                connection.execute(known.event_insert, {"ids": encode([row[0] for row in rows])})
                # Nobody knows which rows a key has kept out.
                candidates = rows if inserted != len(rows) else rows[-1:]
                self.proofs = [CommitProof.of_new_row(str(row[0])) for row in candidates]
        except apsw.Error:
            self._failed = True
            raise
        if inserted != len(rows) and not some:
            raise Contended("a key was taken by another process")

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self.read(query, rows=rows, **parameters)

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._rows(require_plain(self._catalogue.queries[query]), rows, parameters)

    def check(self) -> None:
        """Refuse a commit after an error: SQLite would commit, and PostgreSQL would not."""
        if self._failed:
            raise StoreError("SQLite: rolled back a transaction that went on after an error")

    def _rows(self, query: Query, rows: Rows | None, parameters: dict[str, object]) -> list[Row]:
        try:
            return self._run(query, query.text, self._bind(query, rows, parameters))
        except apsw.Error:
            self._failed = True
            raise

    def _bind(
        self, query: Query, rows: Rows | None, parameters: dict[str, object]
    ) -> dict[str, object]:
        given = bind_parameters(query, rows, parameters)
        if query.takes_time:
            given[TIME_PARAMETER] = self._catalogue.clock.now()
        return given

    def _run(self, query: Query, text: str, bound: apsw.Bindings) -> list[Row]:
        cursor = self._connection.execute(text, bound)
        # An upgrade while this process goes on may add columns to `*`.
        names = None if query.returns_all_columns else self._catalogue.columns.get(query.name)
        return self._record_and_name(
            query, names or self._learn_names(query, cursor), cursor.fetchall()
        )

    def _record_and_name(
        self, query: Query, names: tuple[str, ...], found: list[tuple[object, ...]]
    ) -> list[Row]:
        """The rows with the names of their columns; the events of a transition are written."""
        if query.changes is not None and found:
            # A row that a transition returns begins with the columns of its event.
            self._record_events([row[:EVENT_WIDTH] for row in found])
        return [dict(zip(names, row, strict=True)) for row in found]

    def _record_events(self, events: list[tuple[object, ...]]) -> None:
        """Write events, many by one statement: each statement hands over the interpreter's lock."""
        place = 0
        for count, text in EVENT_INSERTS.items():
            while len(events) - place >= count:
                values = chain.from_iterable(events[place : place + count])
                self._connection.execute(text, tuple(values))
                place += count

    def _learn_names(self, query: Query, cursor: apsw.Cursor) -> tuple[str, ...]:
        try:
            names = tuple(column[0] for column in cursor.get_description())
        except apsw.ExecutionCompleteError:
            # A statement that gave no row no longer has a description of its columns.
            return ()
        self._catalogue.columns[query.name] = names
        return names
