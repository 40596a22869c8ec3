"""The tables of a store as rows alone, to be carried over to another database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

TABLE_PREFIX = "holdfast_"
# Each database has its own migrations.
MIGRATION_TABLE = "holdfast_migration"
META_TABLE = "holdfast_meta"
# What each database counts itself as its other tables are filled.
DERIVED_TABLES = frozenset({"holdfast_kept"})

Values = Sequence[object]


class Tables(Protocol):
    """The tables of one store, inside of a transaction that has them for itself."""

    def names(self) -> set[str]: ...

    def columns(self, table: str) -> list[str]: ...

    def count(self, table: str) -> int: ...

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Values]: ...

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None: ...

    def clear(self, table: str) -> None: ...

    def counter(self, table: str) -> int | None:
        """The last number that the table gave to a row by itself; None where it gives none."""

    def set_counter(self, table: str, last: int) -> None: ...
