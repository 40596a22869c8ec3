"""What a SQLite file goes through: other processes, and a disk that fails."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from holdfast.clock import ManualClock, SystemClock
from holdfast.engine.input.validation import new_task
from holdfast.errors import StoreError, StoreUnreachable, UnknownOutcome, UnsafeSqlite
from holdfast.ids import Ids
from holdfast.model.task import NewTask
from holdfast.randomness import SystemRandomness
from holdfast.settings import MEBIBYTE, Settings
from holdfast.store.database import Database, DriverPorts, SqlDirectories, Transaction, sqlite_path
from holdfast.store.sql_text.queries import Rows
from holdfast.store.sqlite.backup import back_up
from holdfast.store.sqlite.connection import LOG_LIMIT, refuse_unsafe_version
from holdfast.store.sqlite.database import SqliteDatabase
from holdfast.threads import SystemThreads
from tests import engines
from tests.contract.raw_store import raw
from tests.contract.store.small_store import FILES, add, events, notes, opened, tasks
from tests.contract.store.test_inserts import written
from tests.contract.task_states import CHAIN, start


@pytest.fixture
def rival(sqlite_url: str) -> Iterator[apsw.Connection]:
    """Another connection to the file, which takes its turn when a test says so."""
    with opened(sqlite_url):
        pass
    connection = apsw.Connection(str(sqlite_path(sqlite_url)))
    yield connection
    connection.close()


def test_a_writer_that_finds_the_file_locked_waits_for_it(
    sqlite_url: str, rival: apsw.Connection
) -> None:
    class Turn(ManualClock):
        """The rival is done by the time someone has waited three times."""

        waits: list[float]

        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            self.waits.append(seconds)
            if len(self.waits) == 3:
                rival.execute("COMMIT")

    clock = Turn()
    clock.waits = []
    with opened(sqlite_url, clock=clock) as database:
        rival.execute("BEGIN IMMEDIATE")
        add(database, ("t_1", "one"))
        assert tasks(database) == {"t_1": "one"}
    assert len(clock.waits) == 3
    assert len(set(clock.waits)) == 3


def test_waiting_comes_to_an_end(sqlite_url: str, rival: apsw.Connection) -> None:
    clock = ManualClock()
    with opened(sqlite_url, clock=clock, patience=5) as database:
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnreachable, match="locked for 5 seconds"):
            add(database, ("t_1", "one"))
        assert 5 <= clock.monotonic() < 5.1
        rival.execute("ROLLBACK")
        add(database, ("t_1", "one"))


def test_a_view_looks_while_another_process_writes(sqlite_url: str, rival: apsw.Connection) -> None:
    with opened(sqlite_url, clock=ManualClock()) as database:
        add(database, ("t_1", "one"))
        rival.execute("BEGIN IMMEDIATE")
        rival.execute("DELETE FROM holdfast_task")
        assert tasks(database) == {"t_1": "one"}
        rival.execute("COMMIT")
        assert tasks(database) == {}


def test_a_store_that_is_up_to_date_opens_while_another_process_writes(
    sqlite_url: str, rival: apsw.Connection
) -> None:
    rival.execute("BEGIN IMMEDIATE")
    clock = ManualClock()
    with opened(sqlite_url, clock=clock) as database:
        assert tasks(database) == {}
    assert clock.monotonic() == 0


def test_every_connection_is_durable_and_checks_its_references(sqlite_url: str) -> None:
    with opened(sqlite_url) as database:
        assert isinstance(database, SqliteDatabase)
        writer = database._open_writer()  # noqa: SLF001
        settings = [writer.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys")]
        assert settings == ["wal", 2, 1]
        assert writer.pragma("journal_size_limit") == LOG_LIMIT


def scribble(database: Database, page: int) -> None:
    text = f"{page} " + "x" * MEBIBYTE
    database.transact(lambda transaction: transaction.run("add_note", text=text))


@pytest.mark.parametrize("linked", [False, True])
def test_a_log_that_readers_let_grow_is_emptied_as_soon_as_they_let_go(
    sqlite_url: str, rival: apsw.Connection, tmp_path: Path, *, linked: bool
) -> None:
    log = Path(f"{sqlite_path(sqlite_url)}-wal")
    pages = itertools.count()
    link = tmp_path / "link.db"
    link.symlink_to(sqlite_path(sqlite_url))
    with opened(f"sqlite:///{link}" if linked else sqlite_url) as database:
        for _ in range(2):
            rival.execute("BEGIN; SELECT count(*) FROM note").fetchall()
            while log.stat().st_size <= LOG_LIMIT + MEBIBYTE:
                scribble(database, next(pages))
            rival.execute("COMMIT")
            # A log that was in use is looked at again after it has grown by a quarter.
            for _ in range(5):
                scribble(database, next(pages))
            assert log.stat().st_size < LOG_LIMIT
        assert len(notes(database)) == next(pages)


@pytest.mark.parametrize(
    ("version", "safe"),
    [("3.51.2", False), ("3.9.0", False), ("3.51.3", True), ("3.100.0", True), ("4.0", True)],
)
def test_a_sqlite_that_can_corrupt_a_shared_file_is_refused(version: str, *, safe: bool) -> None:
    if safe:
        refuse_unsafe_version(version)
    else:
        with pytest.raises(UnsafeSqlite, match=r"3\.51\.3"):
            refuse_unsafe_version(version)


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_new_file_is_its_owners_alone_whatever_the_umask(sqlite_url: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        with opened(sqlite_url) as database:
            add(database, ("t_1", "one"))
            for suffix in ("", "-wal", "-shm"):
                file = Path(f"{sqlite_path(sqlite_url)}{suffix}")
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_file_that_was_there_keeps_its_mode(sqlite_url: str) -> None:
    path = sqlite_path(sqlite_url)
    path.touch(mode=0o640)
    path.chmod(0o640)
    with opened(sqlite_url):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="nowhere"),
        opened(f"sqlite:///{tmp_path}/nowhere/holdfast.db"),
    ):
        pass


def test_a_file_that_may_not_be_written_is_named(sqlite_url: str) -> None:
    with opened(sqlite_url) as database:
        path = sqlite_path(sqlite_url)
        with pytest.raises(StoreError, match=f"^{path} cannot be written; may you write it"):
            database.view(lambda tx: tx.change("add_tasks", rows=[("t1", "never")]))


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holdfast.db").write_text("dear diary, " * 100)
    with (
        pytest.raises(StoreError, match="not a SQLite database"),
        opened(f"sqlite:///{tmp_path}/holdfast.db"),
    ):
        pass


class Disk:
    """A disk that does as a test says: `failures` syncs of the log fail, from now on."""

    def __init__(self) -> None:
        self.failures = 0


class FailingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._log and self._disk.failures:
            self._disk.failures -= 1
            raise apsw.IOError("disk I/O error")
        super().xSync(flags)


class FailingDisk(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        super().__init__(name, "")
        self._disk = disk

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return FailingFile(self._disk, name, flags)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def shaky(sqlite_url: str, disk: Disk) -> Iterator[SqliteDatabase]:
    with on_disk(disk, sqlite_url, FILES) as database:
        database.upgrade()
        yield database


@contextmanager
def on_disk(disk: Disk, url: str, files: SqlDirectories) -> Iterator[SqliteDatabase]:
    """A database on a disk that fails on request."""
    vfs = FailingDisk("shaky", disk)
    surroundings = DriverPorts(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        threads=SystemThreads(),
        settings=Settings(url=url),
        sql_directories=files,
    )
    database = SqliteDatabase(sqlite_path(url), surroundings, vfs="shaky")
    yield database
    disk.failures = 0
    database.close()
    vfs.unregister()


def test_a_commit_that_the_disk_refused_is_not_there_and_never_will_be(
    shaky: SqliteDatabase, disk: Disk, sqlite_url: str, tmp_path: Path
) -> None:
    add(shaky, ("t_1", "one"))
    # Someone else has the file open, so that the log outlives the connection that failed.
    assert tasks(shaky) == {"t_1": "one"}
    disk.failures = 1
    with pytest.raises(StoreError, match=r"SQLite: .*I/O"):
        add(shaky, ("t_2", "two"))
    assert tasks(shaky) == {"t_1": "one"}
    # A machine that loses its power now recovers from the file and the log as they lie there.
    path = sqlite_path(sqlite_url)
    for suffix in ("", "-wal"):
        (tmp_path / f"copy.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    with opened(f"sqlite:///{tmp_path}/copy.db") as recovered:
        assert tasks(recovered) == {"t_1": "one"}
    add(shaky, ("t_3", "three"))
    assert list(tasks(shaky)) == ["t_1", "t_3"]
    assert len(events(shaky)) == 2


def test_a_commit_that_happened_all_the_same_is_a_success(shaky: SqliteDatabase) -> None:
    # What is wrong after the commit is reported by COMMIT too, and it stands nevertheless.
    writer = shaky._open_writer()  # noqa: SLF001
    writer.set_wal_hook(lambda *_: apsw.SQLITE_IOERR)
    assert len(add(shaky, ("t_1", "one"))) == 1
    assert tasks(shaky) == {"t_1": "one"}
    assert len(events(shaky)) == 1
    add(shaky, ("t_2", "two"))


def test_a_disk_that_goes_on_failing_leaves_the_outcome_unknown(
    shaky: SqliteDatabase, disk: Disk
) -> None:
    add(shaky, ("t_1", "one"))
    disk.failures = 1000
    with pytest.raises(UnknownOutcome, match="cannot be asked"):
        add(shaky, ("t_2", "two"))
    disk.failures = 0
    add(shaky, ("t_3", "three"))


def test_a_failing_disk_leaves_the_outcome_of_a_commit_without_events_unknown(
    shaky: SqliteDatabase, disk: Disk
) -> None:
    disk.failures = 1
    with pytest.raises(UnknownOutcome, match="no event"):
        shaky.transact(lambda t: t.run("add_note", text="x"))
    shaky.transact(lambda t: t.run("add_note", text="y"))
    assert "y" in notes(shaky)


@pytest.mark.parametrize("stands", [True, False])
def test_the_outcome_of_a_failed_commit_is_known_though_a_key_kept_out_one_row(
    sqlite_store_url: str, disk: Disk, *, stands: bool
) -> None:
    clock = SystemClock()
    ids = Ids(clock, SystemRandomness())
    task = new_task(NewTask(title="job", key="mine"), ids, max_payload=100, now=clock.now)
    held = written(replace(task, id="t_" + "7" * 20), ["mine"])
    rows = written(task, [None, "mine"])
    with on_disk(disk, sqlite_store_url, SqlDirectories()) as database:

        def insert(rows: Rows) -> None:
            database.transact(lambda tx: tx.insert("insert_tasks", rows=rows, some=True))

        insert(held)
        if stands:
            writer = database._open_writer()  # noqa: SLF001
            writer.set_wal_hook(lambda *_: apsw.SQLITE_IOERR)
            insert(rows)
        else:
            disk.failures = 1
            with pytest.raises(StoreError, match=r"SQLite: .*I/O"):
                insert(rows)
        (found,) = database.view(lambda tx: tx.read("task_key_holders", rows=[("mine", "")]))
        assert found["id"] == held[0][0]
    with raw(sqlite_store_url) as look:
        told = {row["entity"] for row in look("SELECT entity FROM holdfast_event")}
    assert told == {held[0][0], *([rows[0][0]] if stands else [])}


class WriteBeside:
    """How many pages a copy takes at once: one, and somebody writes before each."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.asked = 0

    def __index__(self) -> int:
        self.asked += 1
        assert self.asked < 1_000, "the copy begins again and again"
        add(self.database, (f"t{self.asked}", "beside"))
        return 1


def test_a_copy_is_of_one_moment_and_comes_to_an_end_while_others_write(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(sqlite_url) as database:
        beside = WriteBeside(database)
        monkeypatch.setattr("holdfast.store.sqlite.backup.PAGES_AT_ONCE", beside)
        back_up(sqlite_path(sqlite_url), tmp_path / "copy.db")
        assert beside.asked > 1
    with opened(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert tasks(copy) == {}


def test_a_full_disk_fails_the_transaction_and_nothing_else(shaky: SqliteDatabase) -> None:
    add(shaky, ("t_1", "one"))
    writer = shaky._open_writer()  # noqa: SLF001
    limit = writer.pragma("max_page_count", writer.pragma("page_count"))

    def work(transaction: Transaction) -> None:
        for number in range(1000):
            transaction.run("add_note", text=f"{number}" * 1000)

    with pytest.raises(StoreError, match="full"):
        shaky.transact(work)
    writer.pragma("max_page_count", 2 * int(limit))
    add(shaky, ("t_2", "two"))
    assert (list(tasks(shaky)), notes(shaky)) == (["t_1", "t_2"], [])


def test_statements_stay_prepared_from_one_group_to_the_next(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[object] = []

    def note(*what: object) -> int:
        prepared.append(what)
        return apsw.SQLITE_OK

    def listen(connection: apsw.Connection) -> None:
        connection.authorizer = note

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, listen])
    with engines.opened(sqlite_url) as engine:
        for _ in range(3):
            prepared.clear()
            start(engine, CHAIN)
            for _ in CHAIN.steps:
                (assignment,) = engine.work.claim("worker")
                assert engine.work.complete(assignment.task.id, assignment.token).ok
        assert prepared == []
