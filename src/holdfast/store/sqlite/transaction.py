"""Named queries inside one SQLite transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import apsw

from holdfast.clock import Clock
from holdfast.errors import StoreError
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import (
    TIME,
    Query,
    Rows,
    bind,
    check,
    counted,
    encode,
    plain,
    transition,
)
from holdfast.store.sql_text.transitions import RECORD, RETURNED, Mark, Together
from holdfast.store.sqlite import bulk_changes
from holdfast.store.sqlite.bulk_changes import Gathering
from holdfast.store.sqlite.wide_rows import AT_ONCE, WideQuery

EVENT = len(RETURNED)
RECORDS = {count: RECORD + ", ".join([f"({', '.join('?' * EVENT)})"] * count) for count in AT_ONCE}
MARKED = ("entity", "version", "changed_at", "type")
LAST_EVENT = "SELECT entity, version, at, type FROM holdfast_event WHERE seq = last_insert_rowid()"


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The queries, and the names of their result's columns as far as they are known."""

    queries: Mapping[str, Query]
    columns: dict[str, tuple[str, ...]]
    clock: Clock
    wide: dict[str, WideQuery] = field(default_factory=dict)


class SqliteTransaction:
    def __init__(
        self,
        connection: apsw.Connection,
        catalogue: Catalogue,
        gathering: Gathering | None = None,
    ) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._gathering = gathering or Gathering()
        self.mark: Mark | None = None
        self._failed = False

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self._rows(plain(self._catalogue.queries[query]), rows, parameters)

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        known = transition(self._catalogue.queries[query])
        told = self._gathering.choose(self._connection, known, rows, parameters)
        if told is None:
            changed = self._rows(known, rows, parameters)
        else:
            changed = self._change_together(known, told, rows, parameters)
        if changed:
            self.mark = Mark.of(changed[-1])
        return changed

    def insert(self, query: str, /, *, rows: Rows) -> Callable[[], int]:
        known = counted(self._catalogue.queries[query])
        connection, inserted = self._connection, 0
        try:
            for text, bound in self._parts(known, rows, {}):
                connection.execute(text, bound)
                inserted += connection.changes()
            if inserted:
                connection.execute(known.recorded, {"ids": encode([row[0] for row in rows])})
                found = connection.execute(LAST_EVENT).fetchall()
                self.mark = Mark.of(dict(zip(MARKED, found[0], strict=True)))
        except apsw.Error:
            self._failed = True
            raise
        return lambda: inserted

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return self.read(query, rows=rows, **parameters)

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._rows(plain(self._catalogue.queries[query]), rows, parameters)

    def check(self) -> None:
        """Refuse to be committed after an error, which SQLite would do and PostgreSQL would not."""
        if self._failed:
            raise StoreError("SQLite: rolled back a transaction that went on after an error")

    def _rows(self, query: Query, rows: Rows | None, parameters: dict[str, object]) -> list[Row]:
        try:
            if rows is not None and query.wide:
                found: list[Row] = []
                for text, bound in self._parts(query, rows, parameters):
                    found += self._run(query, text, bound)
                return found
            return self._run(query, query.text, self._bind(query, rows, parameters))
        except apsw.Error:
            self._failed = True
            raise

    def _change_together(
        self, query: Query, told: Together, rows: Rows | None, parameters: dict[str, object]
    ) -> list[Row]:
        given = self._bind(query, rows, parameters)
        try:
            return bulk_changes.change(self._connection, told, given)
        except (apsw.Error, StoreError):
            self._failed = True
            # Whatever is missing there, the next transaction prepares it again.
            self._gathering.forget()
            raise

    def _bind(
        self, query: Query, rows: Rows | None, parameters: dict[str, object]
    ) -> dict[str, object]:
        given = bind(query, rows, parameters)
        if query.timed:
            given[TIME] = self._catalogue.clock.now()
        return given

    def _run(self, query: Query, text: str, bound: apsw.Bindings) -> list[Row]:
        cursor = self._connection.execute(text, bound)
        # Whoever upgrades the store while this process goes on adds columns to whole rows.
        names = None if query.whole else self._catalogue.columns.get(query.name)
        return self._recorded(query, names or self._learn_names(query, cursor), cursor.fetchall())

    def _parts(
        self, query: Query, rows: Rows, parameters: dict[str, object]
    ) -> Iterator[tuple[str, list[object]]]:
        check(query, {*parameters, "rows"})
        wide = self._catalogue.wide.get(query.name)
        if wide is None:
            wide = self._catalogue.wide[query.name] = WideQuery(query)
        if query.timed:
            parameters[TIME] = self._catalogue.clock.now()
        return wide.parts(rows, parameters)

    def _recorded(
        self, query: Query, names: tuple[str, ...], found: list[tuple[object, ...]]
    ) -> list[Row]:
        """The rows by name; of a transition, with their events written."""
        if query.changes is not None and found:
            # What a transition returns begins with what its event holds.
            self._record([row[:EVENT] for row in found])
        return [dict(zip(names, row, strict=True)) for row in found]

    def _record(self, events: list[tuple[object, ...]]) -> None:
        """Write events, many with one statement: each costs the interpreter's lock once."""
        place = 0
        for count, text in RECORDS.items():
            while len(events) - place >= count:
                values = chain.from_iterable(events[place : place + count])
                self._connection.execute(text, tuple(values))
                place += count

    def _learn_names(self, query: Query, cursor: apsw.Cursor) -> tuple[str, ...]:
        try:
            names = tuple(column[0] for column in cursor.get_description())
        except apsw.ExecutionCompleteError:
            # Without a row SQLite no longer says what its columns were.
            return ()
        self._catalogue.columns[query.name] = names
        return names
