"""Migrations: in order, once, whole or not at all, whoever else opens the store meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest

from holdfast.clock import SystemClock
from holdfast.errors import SchemaDamaged, SchemaTooNew, StoreError
from holdfast.store import migrations
from holdfast.store.database import SqlDirectories, is_postgresql, sqlite_path
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sqlite.connection import connect
from holdfast.store.sqlite.database import SqliteMigrator
from tests.contract.raw_store import raw
from tests.contract.store.small_store import FILES, HOME, add, opened, tasks, upgrade

SECOND = "CREATE TABLE second (a integer);\nINSERT INTO second VALUES (1);\n"
THIRD = "ALTER TABLE second ADD COLUMN b integer;\n"
DIALECTS: tuple[Dialect, Dialect] = ("sqlite", "postgresql")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of migrations that a test may change."""
    return Path(shutil.copytree(HOME / "migrations", tmp_path / "migrations"))


def write(home: Path, name: str, text: str) -> None:
    for dialect in DIALECTS:
        (home / dialect / name).write_text(text)


def ask(url: str, query: str) -> list[tuple[object, ...]]:
    if is_postgresql(url):
        with psycopg.connect(url) as postgresql:
            return postgresql.execute(query.encode()).fetchall()
    sqlite = apsw.Connection(str(sqlite_path(url)))
    try:
        return list(sqlite.execute(query))
    finally:
        sqlite.close()


def applied(url: str) -> list[object]:
    return [row[0] for row in ask(url, "SELECT name FROM holdfast_migration ORDER BY number")]


def test_a_new_store_gets_every_migration_in_order(bare_url: str, home: Path) -> None:
    write(home, "0002_second.sql", SECOND)
    write(home, "0003_third.sql", THIRD)
    before = SystemClock().now()
    upgrade(bare_url, str(home))
    assert applied(bare_url) == ["small", "second", "third"]
    assert ask(bare_url, "SELECT a, b FROM second") == [(1, None)]
    [(times,)] = ask(bare_url, "SELECT min(applied_at) FROM holdfast_migration")
    assert before <= int(str(times)) <= SystemClock().now()


def test_an_older_store_gets_what_it_lacks_and_keeps_what_it_has(bare_url: str, home: Path) -> None:
    with opened(bare_url) as database:
        add(database, ("t_1", "one"))
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    upgrade(bare_url, str(home))
    assert applied(bare_url) == ["small", "second"]
    assert ask(bare_url, "SELECT a FROM second") == [(1,)]
    files = SqlDirectories(queries=FILES.queries, migrations=home)
    with opened(bare_url, files=files) as database:
        assert tasks(database) == {"t_1": "one"}


def before(number: str, folder: Path) -> str:
    """The migrations up to one."""
    older = Path(shutil.copytree(migrations.DIRECTORY, folder / "older"))
    for each in older.glob("*/*.sql"):
        if each.name >= number:
            each.unlink()
    return str(older)


def test_tasks_that_named_no_function_wait_among_the_bare_ones(
    bare_url: str, tmp_path: Path
) -> None:
    upgrade(bare_url, before("0024", tmp_path))
    made = """INSERT INTO holdfast_task (id, status, kind, step, title, body_digest, max_attempts,
      max_lost, backoff, backoff_max, payload, changed_by, changed_at, created_at)
      VALUES (?, 'queued', ?, ?, '', '', 3, 5, 0, 0, '', '', 1, 1)"""
    with raw(bare_url) as run:
        for row in (("named", "work", "pack"), ("bare", "work", None), ("loop", "group", None)):
            run(made, *row)
    upgrade(bare_url, str(migrations.DIRECTORY))
    assert ask(bare_url, "SELECT id FROM holdfast_task WHERE bare") == [("bare",)]


def test_groups_on_redis_are_known_by_the_prefix_that_all_had(
    bare_url: str, tmp_path: Path
) -> None:
    upgrade(bare_url, before("0020", tmp_path))
    known = "INSERT INTO holdfast_position (channel, consumers, place, passed) VALUES (?, ?, 0, 7)"
    with raw(bare_url) as run:
        for group in ("elsewhere/audit", "audit", "relay/redis"):
            run(known, "workflow.events", group)
    upgrade(bare_url, str(migrations.DIRECTORY))
    found = ask(bare_url, "SELECT consumers, passed FROM holdfast_position ORDER BY consumers")
    assert found == [("audit", 7), ("elsewhere/{holdfast}/audit", 7), ("relay/redis", 7)]


def test_a_migration_that_fails_leaves_nothing_of_itself(bare_url: str, home: Path) -> None:
    write(home, "0002_second.sql", f"{SECOND}DROP TABLE nowhere;\n")
    with pytest.raises(StoreError, match="nowhere"):
        upgrade(bare_url, str(home))
    assert applied(bare_url) == ["small"]
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    assert ask(bare_url, "SELECT a FROM second") == [(1,)]


def test_a_migration_changed_after_it_was_applied_is_named(bare_url: str, home: Path) -> None:
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    write(home, "0002_second.sql", SECOND.replace("integer", "text"))
    with pytest.raises(SchemaDamaged, match=r"0002_second\.sql"):
        upgrade(bare_url, str(home))


def test_line_endings_and_blank_lines_of_a_migration_are_no_change(
    bare_url: str, home: Path
) -> None:
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    write(home, "0002_second.sql", "\n" + SECOND.replace("\n", "  \r\n") + "\n\n")
    upgrade(bare_url, str(home))


def test_a_migration_with_the_number_of_another_is_refused_by_name(
    bare_url: str, home: Path
) -> None:
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    for dialect in DIALECTS:
        (home / dialect / "0002_second.sql").rename(home / dialect / "0002_other.sql")
    with pytest.raises(SchemaDamaged, match=r"0002_other\.sql.*0002_second\.sql"):
        upgrade(bare_url, str(home))


def test_a_record_that_is_missing_is_noticed(bare_url: str, home: Path) -> None:
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    if is_postgresql(bare_url):
        with psycopg.connect(bare_url) as postgresql:
            postgresql.execute("DELETE FROM holdfast_migration WHERE number = 1")
    else:
        sqlite = apsw.Connection(str(sqlite_path(bare_url)))
        sqlite.execute("DELETE FROM holdfast_migration WHERE number = 1")
        sqlite.close()
    with pytest.raises(SchemaDamaged, match=r"0001_small\.sql"):
        upgrade(bare_url, str(home))


def test_a_schema_from_the_future_is_left_alone_and_the_way_out_is_told(
    bare_url: str, home: Path
) -> None:
    write(home, "0002_second.sql", SECOND)
    upgrade(bare_url, str(home))
    with pytest.raises(SchemaTooNew, match=r"0002_second.*upgrade Holdfast"), opened(bare_url):
        pass
    assert applied(bare_url) == ["small", "second"]


@pytest.mark.parametrize("name", ["0003_gap.sql", "2_short.sql", "0002-dash.sql"])
def test_a_file_that_is_misnamed_is_refused(home: Path, name: str) -> None:
    write(home, name, SECOND)
    with pytest.raises(ValueError, match=name):
        migrations.load("sqlite", home)


def test_processes_that_open_a_new_store_at_once_apply_each_migration_once(
    bare_url: str, home: Path
) -> None:
    write(home, "0002_second.sql", SECOND)
    write(home, "0003_third.sql", THIRD)
    context = multiprocessing.get_context("spawn")
    arguments = (bare_url, str(home))
    openers = [context.Process(target=upgrade, args=arguments) for _ in range(6)]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join(60)
    assert [opener.exitcode for opener in openers] == [0] * 6
    assert applied(bare_url) == ["small", "second", "third"]
    assert ask(bare_url, "SELECT a FROM second") == [(1,)]


UPGRADE = """
import sys
from tests.contract.store.small_store import upgrade
upgrade(sys.argv[1], sys.argv[2])
"""
# SQLite cannot wait by itself: here the migration waits for a line that never comes.
UPGRADE_SQLITE = """
import sys
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.store import migrations
from holdfast.store.sqlite.connection import connect, create_file
from holdfast.store.sqlite.database import SqliteMigrator
def pause():
    print("half-way", flush=True)
    sys.stdin.readline()
create_file(Path(sys.argv[1]))
connection = connect(Path(sys.argv[1]), SystemClock())
connection.create_scalar_function("pause", pause, 0)
migrator = SqliteMigrator(connection, SystemClock())
migrations.upgrade(migrator, migrations.load("sqlite", Path(sys.argv[2])))
"""


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.communicate()


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_sqlite_upgrade_killed_half_way_is_done_by_the_next(
    sqlite_url: str, home: Path, children: list[subprocess.Popen[str]]
) -> None:
    write(home, "0002_second.sql", SECOND + "SELECT pause();\nCREATE TABLE third (a integer);\n")
    path = sqlite_path(sqlite_url)
    child = start(UPGRADE_SQLITE, str(path), str(home))
    children.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "half-way\n"
    child.kill()
    child.wait()
    assert applied(sqlite_url) == ["small"]
    connection = connect(path, SystemClock())
    connection.create_scalar_function("pause", lambda *_: None, 0)
    known = migrations.load("sqlite", home)
    migrations.upgrade(SqliteMigrator(connection, SystemClock()), known)
    connection.close()
    assert applied(sqlite_url) == ["small", "second"]
    assert ask(sqlite_url, "SELECT a FROM second") == [(1,)]


def test_a_postgresql_upgrade_killed_half_way_is_done_by_the_next(
    postgres_url: str, home: Path, children: list[subprocess.Popen[str]]
) -> None:
    wait = "SELECT pg_advisory_xact_lock(2);\nCREATE TABLE third (a integer);\n"
    write(home, "0002_second.sql", SECOND + wait)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("SELECT pg_advisory_lock(2)")
        child = start(UPGRADE, postgres_url, str(home))
        children.append(child)
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not admin.execute(waiting).fetchall():
            assert child.poll() is None
        child.kill()
        child.wait()
        assert applied(postgres_url) == ["small"]
    upgrade(postgres_url, str(home))
    assert applied(postgres_url) == ["small", "second"]
    assert ask(postgres_url, "SELECT a FROM second") == [(1,)]


def test_an_upgrade_whose_session_is_ended_goes_on_by_itself(postgres_url: str, home: Path) -> None:
    # Ends its own session the first time only: what the sequence counted is not rolled back.
    with psycopg.connect(postgres_url) as admin:
        admin.execute("CREATE SEQUENCE tries")
    end = """
    SELECT CASE WHEN nextval('tries') = 1 THEN pg_terminate_backend(pg_backend_pid()) END;
    """
    write(home, "0002_second.sql", SECOND + end)
    upgrade(postgres_url, str(home))
    assert applied(postgres_url) == ["small", "second"]
    assert ask(postgres_url, "SELECT last_value FROM tries") == [(2,)]
