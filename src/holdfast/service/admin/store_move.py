"""Moves of a store: a copy of the whole store into another database, in one transaction there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from holdfast.engine.engine import Engine
from holdfast.engine.explain.doctor import examine_transaction
from holdfast.errors import InvalidInput, StoreError
from holdfast.service.admin.exclusive_access import (
    opened_engine,
    refuse_while_busy,
    refuse_while_leased,
    refuse_while_served,
)
from holdfast.service.project.project import StoreLocation, read_url
from holdfast.service.queries.views import View
from holdfast.store.database import Database, Transaction, check_url, is_postgresql, sqlite_path
from holdfast.store.drivers import STORE_TABLE, list_tables
from holdfast.store.tables import DERIVED_TABLES, META_TABLE, Tables, Values

PROGRESS_EVERY = 10_000

# A callback with the table, how many of its rows are copied, and how many rows it has.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Move:
    """A request to move a store; `evict` has the workers of the store leave first."""

    location: StoreLocation
    target: str
    evict: bool = False
    dry_run: bool = False


def move_store(asked: Move, progress: Progress = lambda *_: None) -> View:
    """Copy every table; the target commits the copy only if every invariant holds there."""
    source, target = asked.location.url, read_url(asked.target)
    check_url(target)
    if is_postgresql(source) == is_postgresql(target):
        tool = "`pg_dump` and `pg_restore`" if is_postgresql(source) else "`holdfast db backup`"
        raise InvalidInput("target", f"it is a database of the same kind; use {tool}")
    asked.location.require_store()
    _refuse_foreign(target)
    refuse_while_served(source)
    with opened_engine(source) as old:
        refuse_while_busy(old, evict=asked.evict and not asked.dry_run)
        with _lock_store(old.database) as (tables, within):
            # Leases are checked again: from here on the lock keeps new ones out.
            refuse_while_leased(within)
            _refuse_unsound(within, "mend it first: `holdfast doctor`")
            if asked.dry_run:
                return _view_move(
                    asked, {each: tables.count(each) for each in sorted(tables.names())}
                )
            with opened_engine(target) as new:
                return _copy_store(asked, tables, new, progress)


def _copy_store(asked: Move, old: Tables, engine: Engine, progress: Progress) -> View:
    with _lock_store(engine.database) as (new, within):
        counts = {name: old.count(name) for name in _order_tables(old, new)}
        before = _was_moved_before(old, new)
        if before:
            _refuse_behind(counts, new)
        else:
            _refuse_filled(new)
            new.clear(META_TABLE)
            for name, many in sorted(counts.items(), key=lambda each: each[0] in DERIVED_TABLES):
                _copy_table(name, old, new, partial(_report_progress, progress, name, many))
            _verify_counts(counts, new)
            _refuse_unsound(within, "nothing was kept there")
    return _view_move(asked, counts) | {"before": before}


def _report_progress(progress: Progress, name: str, many: int, done: int) -> None:
    progress(name, done, many)


def _refuse_unsound(within: Transaction, said: str) -> None:
    diagnosis = examine_transaction(within)
    if not diagnosis.ok:
        raise StoreError(f"an invariant of the store does not hold, so {said}\n{diagnosis}")


def _copy_table(name: str, old: Tables, new: Tables, progress: Callable[[int], None]) -> None:
    columns = old.columns(name)
    if {*columns} != {*new.columns(name)}:
        raise StoreError(f"{name} has other columns there; upgrade both: `holdfast db upgrade`")

    def told() -> Iterator[Values]:
        done = 0
        for done, row in enumerate(old.rows(name, columns), 1):
            yield row
            if done % PROGRESS_EVERY == 0:
                progress(done)
        progress(done)

    if name in DERIVED_TABLES:
        new.clear(name)
    new.fill(name, columns, told())
    last = old.counter(name)
    if last and new.counter(name) is not None:
        new.set_counter(name, last)


def _verify_counts(counts: dict[str, int], new: Tables) -> None:
    wrong = [name for name, many in counts.items() if new.count(name) != many]
    if wrong:
        raise StoreError(f"not all of {', '.join(wrong)} arrived, and nothing was kept there")


def _was_moved_before(old: Tables, new: Tables) -> bool:
    """Whether this store was moved there before: no two stores have the same secret."""
    secrets = [dict(_read_meta(each)).get("secret") for each in (old, new)]
    return secrets[0] == secrets[1]


def _read_meta(tables: Tables) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in tables.rows(META_TABLE, ("name", "value"))]


def _refuse_behind(counts: dict[str, int], new: Tables) -> None:
    if any(new.count(name) != many for name, many in counts.items()):
        raise InvalidInput(
            "target",
            "this store was moved there before, and one of the two has gone on since; use the one "
            "that has, or empty the other",
        )


def _refuse_filled(new: Tables) -> None:
    filled = sorted(name for name in new.names() - {META_TABLE} if new.count(name))
    if filled:
        listed = ", ".join(filled)
        raise InvalidInput(
            "target", f"it is a store with something in it ({listed}); name an empty database"
        )


def _refuse_foreign(url: str) -> None:
    tables = list_tables(url) if is_postgresql(url) or sqlite_path(url).exists() else ()
    if tables and STORE_TABLE not in tables:
        place = "TARGET_URL" if is_postgresql(url) else shlex.quote(url)
        told = f"there are other tables in it; `holdfast db upgrade --db {place}` begins a store"
        raise InvalidInput("target", told)


def _order_tables(old: Tables, new: Tables) -> list[str]:
    """The tables, each after those it refers to; SQLite has one query for that order."""
    from holdfast.store.sqlite.tables import SqliteTables  # noqa: PLC0415 - who has it needs apsw

    names = next(
        each for each in (old, new) if isinstance(each, SqliteTables)
    ).order_by_references()
    if {*names} != old.names() or {*names} != new.names():
        raise StoreError("the two have other tables; upgrade both: `holdfast db upgrade`")
    return names


@contextmanager
def _lock_store(database: Database) -> Iterator[tuple[Tables, Transaction]]:
    """The tables of a store and a transaction on it; no other process can write until it ends."""
    if database.dialect == "postgresql":
        from holdfast.store.postgresql.tables import PostgresqlTables, translate_server_errors  # noqa: PLC0415

        with translate_server_errors(), database.begin() as connection:
            yield PostgresqlTables(connection), database.join(connection)
    else:
        from holdfast.store.sqlite.tables import SqliteTables, translate_sqlite_errors  # noqa: PLC0415

        with translate_sqlite_errors(), database.begin() as connection:
            yield SqliteTables(connection), database.join(connection)


def _view_move(asked: Move, counts: dict[str, int]) -> View:
    return {
        "source": asked.location.url,
        "target": read_url(asked.target),
        "dry_run": asked.dry_run,
        "rows": counts,
    }
