"""A store put back from a backup, and one that is carried over to the other kind of database."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import StoreError
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.service.admin.store_move import Move, move_store
from holdfast.service.project.project import StoreLocation
from holdfast.service.project.server_address import announce_server
from holdfast.store.database import is_postgresql, sqlite_path
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment
from tests.contract.cli.command_line import Typed
from tests.contract.raw_store import dump, raw
from tests.contract.task_states import FORK, create, finish, start, take
from tests.race.racers import eventually

SECRET = "hf_" + 40 * "x"
MESSAGE = """
INSERT INTO holdfast_message (channel, message_id, envelope, published_at)
VALUES ('workflow.commands', ?, '{}', 1)
"""


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    engine.commits.start()
    try:
        yield engine
    finally:
        engine.close()


def fill(url: str) -> tuple[str, str]:
    """Something in every part of a store; gives a task that somebody had, and its token."""
    with opened(url) as engine:
        start(engine, FORK).finish("plan")
        finish(
            engine, create(engine, "ünïcode \\ \t 'quoted'"), {"text": "a\\b\tc\nd\\N", "n": None}
        )
        parent = engine.tasks.create(NewTask(title="plan", plan=True, labels={"a": "b"})).id
        engine.tasks.create(NewTask(title="child", parent=parent, enqueue=False))
        tidy = NewTask(title="tidy", payload={"a": [1, True]})
        engine.schedules.put(NewSchedule(name="nightly", cron="0 2 * * *", starts=tidy))
        engine.leases.acquire("deploy", "ada", ttl=60)
        engine.signals.send(parent, "go", {"a": 1})
        taken = take(engine, create(engine, "had"))
    with raw(url) as hand:
        hand("UPDATE holdfast_task SET lease_expires_at = 1 WHERE id = ?", taken.task.id)
    with raw(url) as hand:
        # Published, read by all and let go of: the next one must not begin at 1 again.
        hand(MESSAGE, "old")
        hand("DELETE FROM holdfast_message")
    return taken.task.id, taken.token


def rows(url: str) -> dict[str, object]:
    """What a store holds, but for its migrations, in the terms of both databases."""
    return {
        name: sorted(str({key: _plain(value) for key, value in row.items()}) for row in each)
        for name, each in dump(url).items()
        if each and name != "holdfast_migration"
    }


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


@pytest.fixture(params=["to PostgreSQL", "to SQLite"])
def urls(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> tuple[str, str]:
    """A store to move, and where to."""
    there = f"sqlite:///{tmp_path}/there.db"
    return (there, postgres_url) if request.param == "to PostgreSQL" else (postgres_url, there)


def test_a_store_arrives_whole_its_tokens_hold_and_it_goes_on(
    typed: Typed, urls: tuple[str, str]
) -> None:
    source, target = urls
    task_id, token = fill(source)
    before = rows(source)
    would = typed.ok("db", "move", target, "--dry-run", "--db", source)
    assert "nothing was changed" in would
    said = typed("db", "move", target, "--db", source)
    assert said.code == 0, said.err
    assert "the whole store is there, counted and checked" in said.out
    assert "  event " in said.err
    assert rows(target) == rows(source) == before
    with opened(target) as engine:
        assert engine.work.complete(task_id, token, "still mine").ok
        seq = max(event.seq for event in engine.tasks.events(task_id))
        assert engine.tasks.events(create(engine))[0].seq > seq
        assert engine.doctor().ok
    with raw(target) as hand:
        hand(MESSAGE, "new")
        assert hand("SELECT seq FROM holdfast_message") == [{"seq": 2}]


def test_a_move_that_broke_off_left_nothing_and_one_that_was_done_is_recognised(
    typed: Typed, urls: tuple[str, str]
) -> None:
    source, target = urls
    fill(source)
    asked = Move(
        location=StoreLocation(url=source, home=Path(), may_be_created=True), target=target
    )

    def break_off(table: str, *_: int) -> None:
        if table == "holdfast_event":
            raise StoreError("broken off")

    with pytest.raises(StoreError, match="broken off"):
        move_store(asked, break_off)
    assert {name: each for name, each in dump(target).items() if each}.keys() == {
        "holdfast_meta",
        "holdfast_migration",
    }
    assert move_store(asked)["before"] is False
    assert move_store(asked)["before"] is True
    assert "the whole store was moved before" in typed.ok("db", "move", target, "--db", source)
    with opened(target) as engine:
        create(engine)
    told = typed.refused(2, "db", "move", target, "--db", source)
    assert "was moved there before, and one of the two has gone on since" in told


def test_a_target_with_something_in_it_and_a_store_at_work_are_refused(
    typed: Typed, urls: tuple[str, str]
) -> None:
    source, target = urls
    fill(source)
    with opened(target) as engine:
        create(engine)
    kept = dump(target)
    told = typed.refused(2, "db", "move", target, "--db", source)
    assert "target: it is a store with something in it (holdfast_event, holdfast_task)" in told
    with opened(source) as engine:
        engine.workers.register("w", agents=["default"])
        told = typed.refused(2, "db", "move", target, "--db", source)
        assert "w lives on this store; `--evict` has them give back what they run" in told
        with announce_server(source, "http://127.0.0.1:1"):
            for more in ((), ("--evict",), ("--dry-run",)):
                told = typed.refused(5, "db", "move", target, "--db", source, *more)
                assert "the server at http://127.0.0.1:1 has " in told
        assert [each.told for each in engine.workers.list()] == [None]
    with raw(source) as hand:
        hand("DELETE FROM holdfast_worker")
        hand("UPDATE holdfast_task SET lease_expires_at = ? WHERE title = 'had'", 2**52)
    assert "leases: somebody works on t_" in typed.refused(2, "db", "move", target, "--db", source)
    assert dump(target) == kept
    kind = "`pg_dump`" if is_postgresql(source) else f"`holdfast db backup --db {source}`"
    assert kind in typed.refused(2, "db", "move", source, "--db", source)
    assert "'mysql' is not a database" in typed.refused(
        2, "db", "move", "mysql://x", "--db", source
    )


def test_a_database_of_somebody_else_is_no_target(
    typed: Typed, sqlite_url: str, postgres_url: str
) -> None:
    fill(sqlite_url)
    with raw(postgres_url) as hand:
        hand("CREATE TABLE customers (id integer)")
    told = typed.refused(2, "db", "move", postgres_url, "--db", sqlite_url)
    assert "target: there are other tables in it" in told


def test_a_backup_is_put_back_what_was_is_kept_and_older_tokens_are_none(
    typed: Typed, url: str, tmp_path: Path
) -> None:
    task_id, token = fill(url)
    with raw(url) as hand:
        hand("INSERT INTO holdfast_meta (name, value) VALUES ('other', 'kept')")
    with opened(url) as engine:
        engine.access.grant("ci", SECRET, role="worker")
    typed.ok("db", "backup", "b.db")
    with opened(url) as engine:
        engine.access.revoke("ci")
        later = create(engine, "later")
    now = rows(url)
    assert "is whole and in order; nothing was changed" in typed.ok(
        "db", "restore", "b.db", "--dry-run"
    )
    assert rows(url) == now
    told = typed.json("db", "restore", "b.db")
    assert rows(f"sqlite:///{told['kept']}") == now
    with opened(url) as engine:
        assert later not in [task.id for task in engine.tasks.list()]
        assert engine.tasks.get(task_id).status == "running"
        refused = engine.work.complete(task_id, token, "from before")
        assert (refused.ok, refused.reason) == (False, "stale_token")
        # It may have been revoked since the backup was made.
        assert engine.access.find(SECRET) is None
        assert engine.doctor().ok
    with raw(url) as hand:
        assert hand("PRAGMA journal_mode") == [{"journal_mode": "wal"}]
        assert hand("SELECT value FROM holdfast_meta WHERE name = 'other'") == [{"value": "kept"}]
    assert [each for each in tmp_path.iterdir() if "restoring" in each.name] == []


def test_a_store_that_is_broken_is_replaced_all_the_same(typed: Typed, url: str) -> None:
    fill(url)
    typed.ok("db", "backup", "b.db")
    path = sqlite_path(url)
    for text in (b"no database at all", b""):
        path.write_bytes(text)
        path.with_name(f"{path.name}-wal").write_bytes(b"left behind")
        kept = Path(typed.json("db", "restore", "b.db")["kept"])
        assert not text or kept.read_bytes() == text
        assert typed.json("doctor")["ok"]
    again = [Path(typed.json("db", "restore", "b.db")["kept"]) for _ in range(2)]
    assert len({*again}) == 2
    assert all(each.exists() for each in again)


def test_a_backup_that_is_none_and_a_store_in_use_are_refused(
    typed: Typed, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.sqlite.backup.BUSY_MILLISECONDS", 50)
    fill(url)
    typed.ok("db", "backup", "b.db")
    before = rows(url)
    (tmp_path / "text.db").write_text("text")
    shutil.copy(tmp_path / "b.db", tmp_path / "newer.db")
    with raw(f"sqlite:///{tmp_path}/newer.db") as hand:
        hand("INSERT INTO holdfast_migration VALUES (99, 'later', 'x', 1)")
    shutil.copy(tmp_path / "b.db", tmp_path / "wrong.db")
    with raw(f"sqlite:///{tmp_path}/wrong.db") as hand:
        hand("UPDATE holdfast_task SET version = 77 WHERE title = 'had'")
    for name, code, why in (
        ("none.db", 2, "there is no file"),
        ("text.db", 2, "is no SQLite database"),
        ("newer.db", 5, "upgrade Holdfast"),
        ("wrong.db", 2, "an invariant does not hold in the backup"),
        (str(sqlite_path(url)), 2, "is the store itself"),
    ):
        assert why in typed.refused(code, "db", "restore", name)
    with opened(url) as engine:
        engine.workers.register("w", agents=["default"])
        assert "w lives on this store" in typed.refused(2, "db", "restore", "b.db")
        assert "is no SQLite database" in typed.refused(2, "db", "restore", "text.db")
        rehearsed = typed.refused(2, "db", "restore", "b.db", "--dry-run")
        assert "workers: the restore would be refused: w lives on this store" in rehearsed
        assert "is whole" in typed.ok("db", "restore", "b.db", "--dry-run", "--evict")
        with announce_server(url, "http://127.0.0.1:1"):
            for more in ((), ("--evict",), ("--dry-run",)):
                served = typed.refused(5, "db", "restore", "b.db", *more)
                path = sqlite_path(url)
                assert f"the server at http://127.0.0.1:1 has {path} open, and w lives" in served
        assert [each.told for each in engine.workers.list()] == [None]
    with raw(url) as hand:
        hand("DELETE FROM holdfast_worker")
        hand("BEGIN IMMEDIATE")
        for more in ((), ("--dry-run",)):
            assert "another process has" in typed.refused(5, "db", "restore", "b.db", *more)
        hand("ROLLBACK")
    assert rows(url) == before
    assert typed("db", "restore", "b.db", "--db", "postgresql://x/y").code == 2


def test_workers_that_are_evicted_make_way_for_a_backup(
    typed: Typed, url: str, tmp_path: Path
) -> None:
    typed.ok("task", "add", "one")
    typed.ok("db", "backup", "b.db")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "worker", "--agent", "nobody", "--lease", "2s"],
        cwd=tmp_path,
        env=environment(HOLDFAST_DB=url),
        stderr=subprocess.DEVNULL,
    ) as worker:
        try:
            assert eventually(lambda: typed.json("workers")["items"] != [])
            assert "lives on this store" in typed.refused(2, "db", "restore", "b.db")
            assert "is kept" in typed.ok("db", "restore", "b.db", "--evict")
            assert worker.wait(PATIENCE) == 0
        finally:
            worker.kill()
