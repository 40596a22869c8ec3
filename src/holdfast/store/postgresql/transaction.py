"""A PostgreSQL transaction: named statements, sent without waiting for unneeded answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from holdfast.clock import Clock
from holdfast.errors import UnknownOutcome
from holdfast.store.database import Row, WronglyExpected
from holdfast.store.postgresql.common_values import bind_by_column, is_worthwhile
from holdfast.store.sql_text.queries import (
    Query,
    Rows,
    bind_parameters,
    check_parameters,
    require_counted,
    require_plain,
    require_transition,
)
from holdfast.store.sql_text.transitions import WANTED_PARAMETER, CommitProof

_READ_XID = "SELECT CAST(pg_current_xact_id_if_assigned() AS text)"
_SET_TIME = "SELECT set_config('holdfast.now', %(now)s, false)"


_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE \w+(?: AS \w+)? SET|DELETE FROM|SAVEPOINT)\b")


@cache
def may_write(query: Query) -> bool:
    return _WRITES.search(query.text) is not None


@cache
def returns_changes(query: Query) -> bool:
    """Whether a statement returns each row that it changes, so that none means no change."""
    verb, _, _ = query.text.partition(" ")
    return verb in {"INSERT", "UPDATE", "DELETE"} and "RETURNING" in query.text


class StatementAnswer(Protocol):
    def rows(self) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """Wait for the answer to a statement: the names of its columns, and its rows."""


class StatementSender(Protocol):
    """The port to a connection: a session of the store, or an application's connection."""

    def execute(self, text: str, parameters: Mapping[str, object] = ...) -> StatementAnswer: ...


Bound = dict[str, object]


@dataclass(kw_only=True, eq=False)
class LateRead:
    """A read whose answer is asked for after the commit, and that can then be made again."""

    query: str
    given: Rows | None
    parameters: Bound
    answer: StatementAnswer
    found: list[Row] | None = None
    # Why the rows of a committed transaction cannot be told.
    error: UnknownOutcome | None = None

    def __call__(self) -> list[Row]:
        if self.error is not None:
            raise self.error
        if self.found is None:
            self.found = _make_rows(self.answer)
        return self.found


class SentAhead:
    """Statements that were sent before their turn, with their answers.

    An answer stands as long as nothing is written after it but by other statements of these.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[Query, Rows | None, Bound, StatementAnswer]] = []
        self._outdated: list[tuple[Query, StatementAnswer]] = []

    def has(self, query: Query, rows: Rows | None, parameters: Bound) -> bool:
        return any(
            known is query and given == rows and named == parameters
            for known, given, named, _ in self._answers
        )

    def add(
        self, query: Query, rows: Rows | None, parameters: Bound, answer: StatementAnswer
    ) -> None:
        self._answers.append((query, rows, parameters, answer))

    def take(self, query: Query, rows: Rows | None, parameters: Bound) -> StatementAnswer | None:
        for place, (known, given, named, answer) in enumerate(self._answers):
            if known is query and given == rows and named == parameters:
                del self._answers[place]
                return answer
        return None

    def note_write(self) -> None:
        """Let no answer stand that came before a statement which writes."""
        self._outdated += [(query, answer) for query, _, _, answer in self._answers]
        self._answers.clear()

    def refuse_unexpected_changes(self) -> None:
        """Raise `WronglyExpected` if a statement has changed rows that nobody asked for."""
        self.note_write()
        for query, answer in self._outdated:
            if may_write(query) and answer.rows()[1]:
                raise WronglyExpected(f"{query.name} was sent ahead, and nothing asked for it")


class PostgresqlTransaction:
    """Sends statements, and waits only for answers that a caller needs.

    Without `pipelined`, each statement is answered before the next one is sent. Nothing is sent
    ahead then, nor if a transaction is tried again, because what was expected may not have come.
    """

    def __init__(
        self,
        session: StatementSender,
        known: Mapping[str, Query],
        clock: Clock,
        *,
        pipelined: bool = False,
        sends_ahead: bool = False,
    ) -> None:
        self._session = session
        self._queries = known
        self._clock = clock
        self._pipelined = pipelined
        self._time_set: int | None = None
        self._xid: str | None = None
        self._may_have_written = False
        self._ahead = SentAhead() if sends_ahead else None
        self._changed: CommitProof | None = None
        # Events of rows that were all inserted, and of rows of which a key may have kept out some.
        self._inserted: list[CommitProof] = []
        self._some_inserted: list[CommitProof] = []
        self.late_reads: list[LateRead] = []

    def read(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        return _make_rows(self._send(query, rows, parameters))

    def read_late(
        self, query: str, /, *, rows: Rows | None = None, **parameters: object
    ) -> Callable[[], list[Row]]:
        given = dict(parameters)
        answer = self._send(query, rows, parameters)
        late = LateRead(query=query, given=rows, parameters=given, answer=answer)
        if self._pipelined:
            self.late_reads.append(late)
        else:
            late()
        return late

    def send_ahead(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        known = self._queries[query]
        if self._ahead is not None and not self._ahead.has(known, rows, parameters):
            answer = self._send_bound(*_bind(known, rows, dict(parameters)))
            self._ahead.add(known, rows, parameters, answer)

    def change(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        known = require_transition(self._queries[query])
        names, found = self._execute(known, rows, parameters).rows()
        if not found:
            return []
        # The last column of a transition is the transaction's id.
        self._xid = found[-1][-1]
        returned = names[:-1]
        changed: list[Row] = [dict(zip(returned, row, strict=False)) for row in found]
        self._changed = CommitProof.of(changed[-1])
        return changed

    def insert(self, query: str, /, *, rows: Rows, some: bool = False) -> None:
        known = require_counted(self._queries[query])
        text, bound = _bind(known, rows, {})
        bound[WANTED_PARAMETER] = -1 if some else len(rows)
        if self._ahead is not None:
            self._ahead.note_write()
        answer = self._send_bound(text, bound)
        if not self._pipelined:
            answer.rows()
        # The ids are new, so that their first events are those of this transaction.
        made = [CommitProof.of_new_row(str(row[0])) for row in rows]
        if some:
            self._some_inserted += made
        else:
            self._inserted = self._inserted or made[:1]

    def write(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> list[Row]:
        known = require_plain(self._queries[query])
        found = _make_rows(self._execute(known, rows, parameters))
        self._may_have_written |= bool(found) or not returns_changes(known)
        return found

    def run(self, query: str, /, *, rows: Rows | None = None, **parameters: object) -> None:
        self._send(query, rows, parameters)

    def xid(self) -> str | None:
        """The transaction's id, which is waited for only if nothing else can prove the commit.

        None if nothing was written, or if the rows that were inserted are the proof.
        """
        # A transition has returned the id already; reads and locks alone leave nothing to commit.
        if self._xid is None and self._may_have_written and not self._inserted:
            ((self._xid,),) = self._session.execute(_READ_XID).rows()[1]
        return self._xid

    def refuse_unexpected_changes(self) -> None:
        """Raise `WronglyExpected` if a statement sent ahead changed what nobody asked for."""
        if self._ahead is not None:
            self._ahead.refuse_unexpected_changes()

    def proofs(self) -> list[CommitProof]:
        """Events of which the store has one exactly if the commit succeeded; none may be known.

        A transaction that only inserted rows, each of which a key may have kept out, has done
        nothing if there is none of their events.
        """
        if self._changed is not None:
            return [self._changed]
        return self._inserted or ([] if self._may_have_written else self._some_inserted)

    def _send(
        self, query: str, rows: Rows | None, parameters: dict[str, object]
    ) -> StatementAnswer:
        known = require_plain(self._queries[query])
        self._may_have_written |= may_write(known)
        return self._execute(known, rows, parameters)

    def _execute(self, query: Query, rows: Rows | None, parameters: Bound) -> StatementAnswer:
        if self._ahead is not None:
            answer = self._ahead.take(query, rows, parameters)
            if answer is not None:
                return answer
            if may_write(query):
                self._ahead.note_write()
        return self._send_bound(*_bind(query, rows, parameters))

    def _send_bound(self, text: str, bound: Bound) -> StatementAnswer:
        if self._clock.manual and self._time_set != (now := self._clock.now()):
            self._session.execute(_SET_TIME, {"now": str(now)})
            self._time_set = now
        return self._session.execute(text, bound)


def _bind(query: Query, rows: Rows | None, parameters: Bound) -> tuple[str, Bound]:
    """The text of a query for these rows, and its parameters."""
    if rows is None or not is_worthwhile(query, rows):
        return query.text, bind_parameters(query, rows, parameters)
    check_parameters(query, {*parameters, "rows"})
    text, columns = bind_by_column(query, rows)
    return text, {**parameters, **columns}


def _make_rows(answer: StatementAnswer) -> list[Row]:
    names, rows = answer.rows()
    return [dict(zip(names, row, strict=True)) for row in rows]
