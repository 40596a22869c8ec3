"""Rows of many columns, a part at a time."""

from __future__ import annotations

import apsw
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.sql_text.macros import WIDE_ROWS, Column
from holdfast.store.sql_text.queries import Query
from holdfast.store.sqlite.wide_rows import WideQuery

COLUMNS = tuple(Column(name=f"c{n}", type="integer") for n in range(10))
QUERY = Query(
    name="add",
    purpose="a query with parameters on both sides of its rows",
    text=f"SELECT :more + r.c0, r.c9, ':not' FROM {WIDE_ROWS} AS r WHERE :more + r.c9 < :least",  # noqa: S608
    columns=COLUMNS,
)


@given(count=st.integers(0, 200))
def test_every_row_is_there_once_in_its_order_and_each_parameter_in_its_place(count: int) -> None:
    rows = [(n, *range(8), -n) for n in range(count)]
    connection = apsw.Connection(":memory:")
    found: list[tuple[object, ...]] = []
    texts = set()
    for text, bound in WideQuery(QUERY).parts(rows, {"more": 1000, "least": 1001}):
        texts.add(text)
        found += list(connection.execute(text, [*bound]))
    assert found == [(1000 + n, -n, ":not") for n in range(count)]
    assert len(texts) <= 3
