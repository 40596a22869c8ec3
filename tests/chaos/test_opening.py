"""A process killed with -9 at every statement of opening a new store leaves whole migrations."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.clock import ManualClock
from holdfast.store import migrations
from holdfast.store.database import is_postgresql, sqlite_path
from tests.chaos.process_jobs import Errand, open_store, recover
from tests.chaos.processes import send
from tests.chaos.stores import await_sessions
from tests.contract.raw_store import Raw, raw, read_all

_TEXTS_OF_SQLITE = "SELECT name || coalesce(sql, '') AS made FROM sqlite_schema"
_COLUMNS_OF_POSTGRESQL = """
SELECT concat_ws(' ', table_name, column_name, data_type) AS made
FROM information_schema.columns WHERE table_schema = 'public'
"""


def empty(url: str) -> None:
    """Take away everything that a store may hold."""
    if is_postgresql(url):
        with raw(url) as run:
            await_sessions(run)
            run("DROP SCHEMA public CASCADE")
            run("CREATE SCHEMA public")
        return
    path = sqlite_path(url)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def describe(url: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """The columns of all tables there are, and the migrations that made them."""
    with raw(url) as run:
        if run.postgresql:
            await_sessions(run)
        made = run(_COLUMNS_OF_POSTGRESQL if run.postgresql else _TEXTS_OF_SQLITE)
        return sorted(str(row["made"]) for row in made), _applied(run)


def _applied(run: Raw) -> list[tuple[object, ...]]:
    if "holdfast_migration" not in read_all(run):
        return []
    rows = run("SELECT number, name, checksum FROM holdfast_migration ORDER BY number")
    return [tuple(row.values()) for row in rows]


def test_opening_a_new_store_killed_at_any_statement_is_done_whole_by_the_next(
    bare_url: str,
) -> None:
    errand = Errand(url=bare_url, now=ManualClock().now())
    opened = send(open_store, errand, None)
    assert opened.exit_code == 0
    tables, applied = describe(bare_url)
    known = migrations.load("postgresql" if is_postgresql(bare_url) else "sqlite")
    assert applied == [(each.number, each.name, each.checksum) for each in known]
    seen: list[object] = []
    for place in _places(opened.statements):
        empty(bare_url)
        killed = send(open_store, errand, place)
        assert killed.killed, place
        left, recorded = describe(bare_url)
        assert recorded == applied[: len(recorded)]
        assert (left == []) == (recorded == []), f"half a migration at statement {place}"
        assert left == tables or recorded != applied, f"half a migration at statement {place}"
        # What is left has been opened before: only that which is new is opened again.
        if (left, recorded) in seen:
            continue
        seen.append((left, recorded))
        assert send(recover, errand, []).exit_code == 0
        assert describe(bare_url) == (tables, applied)
    # PostgreSQL takes each migration as one text, past where statements are counted.
    assert len(seen) == (1 if is_postgresql(bare_url) else len(known) + 1)


def _places(statements: Sequence[str]) -> list[int]:
    """Where it matters: behind one that only reads, the store is as it was one place before."""
    idle = ("SELECT", "BEGIN")
    return [
        place
        for place in range(len(statements))
        if not place or not statements[place - 1].lstrip().startswith(idle)
    ]
