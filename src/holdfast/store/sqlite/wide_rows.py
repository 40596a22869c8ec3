"""Wide rows, apart from transactions because one is bound value by value, and not as JSON.

SQLite would parse the JSON of a row again for each of its columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from holdfast.store.sql_text.macros import WIDE_ROWS
from holdfast.store.sql_text.queries import Query, Rows

# The rows of one statement: few sizes, so that each statement is prepared once and kept.
ROWS_AT_ONCE = (64, 8, 1)
_NAME = re.compile(r"'(?:[^']|'')*'|:([a-z_]\w*)")


class WideQuery:
    """A query whose rows are bound value by value, some rows at a time."""

    def __init__(self, query: Query) -> None:
        self._before, self._after = query.text.split(WIDE_ROWS)
        self._columns = [column.name for column in query.columns]
        named = list(dict.fromkeys(_names(self._before)))
        # Parameters are bound by their order, since the values of rows have no names.
        self._first = named
        self._last = [name for name in dict.fromkeys(_names(self._after)) if name not in named]
        self._texts = {count: self._write(count) for count in ROWS_AT_ONCE}

    def parts(
        self, rows: Rows, parameters: Mapping[str, object]
    ) -> Iterator[tuple[str, list[object]]]:
        first, last = ([parameters[name] for name in each] for each in (self._first, self._last))
        place = 0
        for count in ROWS_AT_ONCE:
            while len(rows) - place >= count:
                values = chain.from_iterable(rows[place : place + count])
                yield self._texts[count], [*first, *values, *last]
                place += count

    def _write(self, count: int) -> str:
        picked = ", ".join(f"column{n} AS {name}" for n, name in enumerate(self._columns, start=1))
        row = f"({', '.join('?' * len(self._columns))})"
        rows = f"(SELECT {picked} FROM (VALUES {', '.join([row] * count)}))"  # noqa: S608
        return self._before + rows + self._after


def _names(text: str) -> list[str]:
    return [found[1] for found in _NAME.finditer(text) if found[1]]
