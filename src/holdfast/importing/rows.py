"""Rows: the values of an older file, checked one by one; every mistake is kept with its row."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.text import digest

MAX_SHOWN = 20
MAX_POSITION = 2**30 - 1
FAILED_BEFORE = "it had failed when it was imported"

Row = dict[str, Any]


class ImportMistakes:
    """The mistakes in one table, collected to refuse the file with all of them."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.found: list[str] = []

    def add(self, row: object, reason: str) -> None:
        self.found.append(f"{self._table}[{row}]: {reason}")

    def identifier(self, row: object, column: str, value: object) -> str:
        if isinstance(value, int) or (isinstance(value, str) and value):
            return str(value)
        self.add(row, f"{column} is {value!r}, not an id")
        return ""

    def status(self, row: object, value: object, known: Collection[str]) -> str:
        if value in known:
            return str(value)
        self.add(row, f"its status {value!r} is none of {', '.join(known)}")
        return next(iter(known))

    def number(self, row: object, column: str, value: object) -> int:
        if value is None:
            return 0
        if isinstance(value, int) and -MAX_POSITION <= value <= MAX_POSITION:
            return value
        self.add(row, f"{column} is {value!r}, not a whole number within {MAX_POSITION} of 0")
        return 0

    def moment(self, row: object, column: str, value: object) -> datetime | None:
        """A time as text; without a zone it is in UTC, as the older programs wrote it."""
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        except ValueError:
            self.add(row, f"{column} is {value!r}, not a date and time as text")
            return None
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

    def unique(self, names: Iterable[str], reason: str) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                self.add(name, reason)
            seen.add(name)

    def raise_if_any(self) -> None:
        if self.found:
            more = len(self.found) - MAX_SHOWN
            told = [*self.found[:MAX_SHOWN], *([f"and {more} more"] if more > 0 else [])]
            raise InvalidInput("source", "; ".join(told))


def sort_key(value: object) -> tuple[int, float, str]:
    """A sort key in the order of SQLite: null, numbers, text."""
    if value is None:
        return (0, 0, "")
    return (1, value, "") if isinstance(value, int | float) else (2, 0, str(value))


def row_as_json(row: Row) -> Row:
    """A row with its bytes as hexadecimal text, which JSON can hold."""
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}


def digest_rows(rows: Iterable[Row]) -> str:
    """The digest of the rows behind a run or tree, which changes with any of them."""
    return digest(json.dumps([row_as_json(row) for row in rows], sort_keys=True))
