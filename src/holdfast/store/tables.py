"""The port to the tables of a store as plain rows, by which a store moves to another database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

TABLE_PREFIX = "holdfast_"
# Each database has its own migrations.
MIGRATION_TABLE = "holdfast_migration"
META_TABLE = "holdfast_meta"
# A database counts the rows of these tables by itself while the other tables are filled.
DERIVED_TABLES = frozenset({"holdfast_kept", "holdfast_label"})

Values = Sequence[object]


class Tables(Protocol):
    """The tables of one store, in a transaction that keeps all others from writing them."""

    def names(self) -> set[str]: ...

    def columns(self, table: str) -> list[str]: ...

    def count(self, table: str) -> int: ...

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Values]: ...

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None: ...

    def clear(self, table: str) -> None: ...

    def counter(self, table: str) -> int | None:
        """The last number that the table gave to a row; None for a table that numbers no rows."""

    def set_counter(self, table: str, last: int) -> None: ...
