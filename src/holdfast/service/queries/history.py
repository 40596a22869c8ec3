"""History: pages of all events of the store, and pages of the effects of a task.

Events are numbered before they commit, so a missing number may still appear. A cursor skips no
event: it lists the gaps before it, each with the first transaction that had not begun when the gap
was seen. When every earlier transaction has ended, the numbers still missing were never used.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.engine.engine import Engine
from holdfast.engine.read.pages import PAGE_SIZE, read_limit
from holdfast.engine.read.records import read_event
from holdfast.errors import InvalidInput
from holdfast.service.queries.run_history import StoreReader
from holdfast.service.queries.views import (
    Titles,
    View,
    read_titles,
    view_event,
    without_nulls,
)
from holdfast.store.database import Row, Transaction

MAX_GAPS = 200
MAX_EVENTS_LOOKED_BACK = 1_000
_CURSOR = re.compile(r"\d{1,18}(?:\.\d{1,18}-\d{1,18}-\d{1,18}){0,200}")
# The first and last number, and the first transaction that had not begun when the gap was seen.
Gap = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    after: int = 0
    gaps: tuple[Gap, ...] = ()

    @classmethod
    def read(cls, text: str) -> Cursor:
        if not _CURSOR.fullmatch(text):
            reason = "is no cursor; pass what `next` or the id of an event said, as it was"
            raise InvalidInput("after", reason)
        after, *gaps = text.split(".")
        return cls(after=int(after), gaps=tuple(_read_gap(each) for each in gaps))

    def __str__(self) -> str:
        return ".".join([str(self.after), *("-".join(map(str, gap)) for gap in self.gaps)])

    def holds(self, seq: int) -> bool:
        """Whether an event comes before this cursor, in a page already returned."""
        return seq <= self.after and not any(first <= seq <= last for first, last, _ in self.gaps)

    def drop_settled_gaps(self, oldest: int) -> Cursor:
        """The cursor without the gaps that no open transaction can fill."""
        if not self.gaps:
            return self
        return replace(self, gaps=tuple(gap for gap in self.gaps if gap[2] > oldest))

    def advance_past(self, seq: int, noted: int | None) -> Cursor:
        """The cursor behind one more event; with a `noted` transaction it keeps a gap before."""
        if seq <= self.after:
            return replace(
                self, gaps=tuple(part for gap in self.gaps for part in _split_gap(gap, seq))
            )
        gaps = self.gaps
        if noted is not None and seq > self.after + 1:
            gaps = (*gaps, (self.after + 1, seq - 1, noted))
        return Cursor(after=seq, gaps=gaps)


@dataclass(frozen=True, kw_only=True, slots=True)
class EventWithCursor:
    """One event, and the cursor behind the event."""

    event: View
    cursor: Cursor


class History:
    def __init__(self, view: StoreReader) -> None:
        self._read_store = view

    def page(self, after: str | None = None, limit: int = PAGE_SIZE) -> View:
        """`{items, next}`; the `next` of the last page continues with later events."""
        cursor = Cursor() if after is None else Cursor.read(after)
        told = self.events_after(cursor, read_limit(limit))
        end = told[-1].cursor if told else cursor
        return without_nulls(items=[each.event for each in told], next=str(end))

    def events_after(self, cursor: Cursor, limit: int) -> list[EventWithCursor]:
        def read(tx: Transaction) -> list[EventWithCursor]:
            gaps = [gap[:2] for gap in cursor.gaps]
            late = tx.read("events_within", rows=gaps, count=limit) if gaps else []
            room = limit - len(late)
            new = tx.read("events_behind", after=cursor.after, count=room) if room else []
            return _advance_cursor(tx, cursor, late, new if room else None)

        return self._read_store(read)

    def latest_cursor(self) -> Cursor:
        """The cursor behind every event that is committed now."""

        def read(tx: Transaction) -> Cursor:
            rows = list(reversed(tx.read("latest_events", count=MAX_EVENTS_LOOKED_BACK)))
            first = Cursor(after=rows[0]["seq"] - 1) if rows else Cursor()
            told = _advance_cursor(tx, first, [], rows)
            return told[-1].cursor if told else first

        return self._read_store(read)


def _advance_cursor(
    tx: Transaction, cursor: Cursor, late: Sequence[Row], new: Sequence[Row] | None
) -> list[EventWithCursor]:
    """The events from gaps, and the new events, each with the cursor behind it.

    `new` is None where the gaps may hold more events than the page has room for.
    """
    (snapshot,) = tx.read("snapshot")
    under_way = snapshot["oldest"] < snapshot["next"]
    noted = snapshot["next"] if under_way else None
    titles = read_titles(tx, [*late, *(new or ())])
    told: list[EventWithCursor] = []
    for row in late:
        cursor = cursor.advance_past(row["seq"], noted)
        told.append(_view_event_with_cursor(row, cursor, titles))
    if new is None:
        return told
    cursor = cursor.drop_settled_gaps(snapshot["oldest"])
    if told:
        told[-1] = replace(told[-1], cursor=cursor)
    for row in new:
        cursor = cursor.advance_past(row["seq"], noted)
        if len(cursor.gaps) > MAX_GAPS:
            # Open transactions have to end before the cursor can list more gaps.
            break
        told.append(_view_event_with_cursor(row, cursor, titles))
    return told


def _view_event_with_cursor(row: Row, cursor: Cursor, titles: Titles) -> EventWithCursor:
    return EventWithCursor(event=view_event(read_event(row), titles), cursor=cursor)


def _read_gap(text: str) -> Gap:
    first, last, noted = map(int, text.split("-"))
    return first, last, noted


def _split_gap(gap: Gap, seq: int) -> list[Gap]:
    first, last, noted = gap
    if not first <= seq <= last:
        return [gap]
    parts = [(first, seq - 1, noted), (seq + 1, last, noted)]
    return [part for part in parts if part[0] <= part[1]]


def view_page_of_effects(engine: Engine, task_id: str, after: str | None, limit: int) -> View:
    """`{effects, next}`: at most `limit` effects, oldest first, behind a `next` of before."""
    effects = engine.work.effects_page(task_id, _read_effects_cursor(after), limit)
    more = urlsafe_b64encode(next(reversed(effects)).encode()) if len(effects) == limit else b""
    return without_nulls(effects=effects, next=more.decode() or None)


def _read_effects_cursor(cursor: str | None) -> str | None:
    """The name of the effect that a cursor stands for."""
    if cursor is None:
        return None
    try:
        return urlsafe_b64decode(cursor).decode()
    except ValueError:
        reason = "is no cursor; pass what `next` said, as it was"
        raise InvalidInput("after", reason) from None
