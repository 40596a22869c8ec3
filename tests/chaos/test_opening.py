"""A process killed with -9 at every statement of opening a new store leaves whole migrations."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.store import migrations
from holdfast.store.database import is_postgresql, sqlite_path
from tests.chaos.errands import Errand, open_store, recover
from tests.chaos.processes import send
from tests.chaos.stores import await_sessions
from tests.contract.raw import Raw, raw, read_all


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
    """The tables there are, and the migrations that made them."""
    with raw(url) as run:
        if run.postgresql:
            await_sessions(run)
        return sorted(read_all(run)), _applied(run)


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
    for place in range(len(opened.statements)):
        empty(bare_url)
        killed = send(open_store, errand, place)
        assert killed.killed, place
        left, recorded = describe(bare_url)
        assert recorded == applied[: len(recorded)]
        assert (left == []) == (recorded == []), f"half a migration at statement {place}"
        assert left == tables or recorded != applied, f"half a migration at statement {place}"
        assert send(recover, errand, []).exit_code == 0
        assert describe(bare_url) == (tables, applied)
