"""Commits of others on a SQLite file: told by a watch on its log, and never taken for one's own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from holdfast.clock import SystemClock
from holdfast.randomness import SystemRandomness
from holdfast.settings import Settings
from holdfast.store.database import DriverPorts, sqlite_path
from holdfast.store.notifiers.file_watch import FileWatch, NoWatch, open_watch
from holdfast.store.notifiers.inotify import Inotify
from holdfast.store.notifiers.sqlite import SqliteNotifier
from holdfast.store.sqlite.database import SqliteDatabase
from holdfast.store.sqlite.foreign_commits import CommitsSeen
from holdfast.threads import SystemThreads, Threads
from tests.contract.hint_listener import Ear
from tests.contract.store.small_store import FILES, add

PATIENCE = 20
# Nobody looks by himself for as long as a test lasts: only the watch can have told.
NEVER = 3_600.0
Opening = Callable[[str, Threads], FileWatch]


@contextmanager
def opened(path: Path, vfs: str | None = None) -> Iterator[SqliteDatabase]:
    surroundings = DriverPorts(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        threads=SystemThreads(),
        settings=Settings(url="sqlite:///unused.db"),
        sql_directories=FILES,
    )
    with closing(SqliteDatabase(path, surroundings, vfs=vfs)) as database:
        database.upgrade()
        yield database


@contextmanager
def listening(
    database: SqliteDatabase, opening: Opening = open_watch, watch: float = NEVER
) -> Iterator[Ear]:
    settings = Settings(url="sqlite:///unused.db", watch=watch)
    ear = Ear()
    with closing(SqliteNotifier(database, SystemThreads(), settings, opening)) as notifier:
        notifier.subscribe(ear)
        notifier.start()
        yield ear


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return sqlite_path(sqlite_url)


@pytest.fixture
def here(path: Path) -> Iterator[SqliteDatabase]:
    with opened(path) as database:
        yield database


@pytest.fixture
def elsewhere(path: Path, here: SqliteDatabase) -> Iterator[SqliteDatabase]:
    """To SQLite each connection is another one, of whatever process."""
    del here
    with opened(path) as database:
        yield database


def numbers() -> set[int]:
    """The files that are open in this process, but for the one that it takes to find out."""
    listed = [int(each.name) for each in Path("/proc/self/fd").iterdir()]
    return {number for number in listed if Path(f"/proc/self/fd/{number}").exists()}


def test_a_commit_elsewhere_is_told_by_the_watch(
    here: SqliteDatabase, elsewhere: SqliteDatabase
) -> None:
    with listening(here) as ear:
        for number in range(1, 6):
            add(elsewhere, (f"t_{number}", "one"))
            assert ear.hears(number)


class Gate:
    """Lets a commit write to the log and keeps it from being there until a test says so."""

    def __init__(self) -> None:
        self.shut = False
        self.reached = threading.Event()
        self.open = threading.Event()

    def passed(self) -> None:
        if self.shut:
            self.reached.set()
            assert self.open.wait(PATIENCE)


class GatedFile(apsw.VFSFile):
    def __init__(self, gate: Gate, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._gate = gate
        self._log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._log:
            self._gate.passed()
        super().xSync(flags)


class GatedDisk(apsw.VFS):
    def __init__(self, gate: Gate) -> None:
        super().__init__("gated", "")
        self._gate = gate

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return GatedFile(self._gate, name, flags)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    vfs = GatedDisk(gate)
    yield gate
    vfs.unregister()


class Attentive:
    """A watch that says when what it told was looked at, and nothing more is written."""

    reports_writes = True

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self.wake, self.close = watch.wake, watch.close
        self.all_told = threading.Event()
        self._told = False

    def wait(self, seconds: float) -> bool:
        written = self._watch.wait(seconds)
        if self._told and not written:
            self.all_told.set()
        self._told |= written
        return written


class Watching:
    """Opens a watch, and lets a test see it."""

    watch: Attentive

    def __call__(self, path: str, threads: Threads) -> FileWatch:
        self.watch = Attentive(open_watch(path, threads))
        return self.watch


def test_a_commit_is_heard_that_was_not_there_yet_when_its_write_was_told(
    path: Path, here: SqliteDatabase, gate: Gate
) -> None:
    watching = Watching()
    with opened(path, vfs="gated") as elsewhere, listening(here, watching) as ear:
        gate.shut = True
        writer = threading.Thread(target=add, args=(elsewhere, ("t_1", "one")))
        writer.start()
        # All of it is written, and the look that followed has seen nothing.
        assert gate.reached.wait(PATIENCE)
        assert watching.watch.all_told.wait(PATIENCE)
        assert ear.count == 0
        gate.shut = False
        gate.open.set()
        assert ear.hears(1)
        writer.join(PATIENCE)


def test_own_commits_are_not_taken_for_commits_of_others(
    here: SqliteDatabase, elsewhere: SqliteDatabase
) -> None:
    here.foreign_commits.look()
    add(here, ("t_1", "one"))
    assert here.foreign_commits.look() == CommitsSeen(own=True)
    assert here.foreign_commits.look() == CommitsSeen()
    add(elsewhere, ("t_2", "two"))
    assert here.foreign_commits.look() == CommitsSeen(others=True)
    assert here.foreign_commits.look() == CommitsSeen()


def test_a_commit_of_others_is_not_lost_behind_ones_own(
    here: SqliteDatabase, elsewhere: SqliteDatabase
) -> None:
    here.foreign_commits.look()
    add(elsewhere, ("t_1", "one"))
    add(here, ("t_2", "two"))
    assert here.foreign_commits.look() == CommitsSeen(others=True, own=True)
    assert here.foreign_commits.look() == CommitsSeen()


def test_a_commit_of_others_is_not_lost_where_a_transaction_could_not_begin(
    path: Path, here: SqliteDatabase, elsewhere: SqliteDatabase
) -> None:
    """A BEGIN that finds the file locked has seen what was committed before that."""
    here.foreign_commits.look()
    add(elsewhere, ("t_1", "one"))
    rival = apsw.Connection(str(path))
    rival.execute("BEGIN IMMEDIATE")
    let_go = threading.Timer(0.05, lambda: rival.execute("ROLLBACK"))
    let_go.start()
    here.transact(lambda _: None)
    let_go.join()
    rival.close()
    assert here.foreign_commits.look() == CommitsSeen(others=True)


def test_a_transaction_that_changed_nothing_or_was_undone_is_no_commit(
    here: SqliteDatabase,
) -> None:
    here.foreign_commits.look()
    here.transact(lambda _: None)

    def fail(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        here.transact(fail)
    assert here.foreign_commits.look() == CommitsSeen()


def test_a_look_does_not_wait_for_a_transaction_that_is_under_way(here: SqliteDatabase) -> None:
    here.foreign_commits.look()
    seen = here.transact(lambda _: here.foreign_commits.look())
    assert seen == CommitsSeen(own=True, writing=True)


def test_a_new_connection_may_have_missed_something(here: SqliteDatabase) -> None:
    here.foreign_commits.look()
    here._close_writer()  # noqa: SLF001
    here.transact(lambda _: None)
    assert here.foreign_commits.look().others


def test_a_notifier_gives_no_hints_of_its_own_commits(
    here: SqliteDatabase, elsewhere: SqliteDatabase
) -> None:
    watching = Watching()
    with listening(here, watching) as ear:
        for number in range(100):
            add(here, (f"t_{number}", "mine"))
        assert watching.watch.all_told.wait(PATIENCE)
        assert ear.count == 0
        add(elsewhere, ("t_other", "yours"))
        assert ear.hears(1)
    assert ear.count == 1


def refuse(path: str, threads: Threads) -> FileWatch:
    del path
    return NoWatch(threads)


class Deaf(NoWatch):
    """As on a file system that takes a watch and tells nothing."""

    reports_writes = True


@pytest.mark.parametrize("opening", [refuse, lambda _, threads: Deaf(threads)])
def test_without_a_watch_that_tells_the_file_is_looked_at_by_turns(
    here: SqliteDatabase, elsewhere: SqliteDatabase, opening: Opening
) -> None:
    with listening(here, opening, watch=0.02) as ear:
        for number in range(1, 4):
            add(elsewhere, (f"t_{number}", "one"))
            assert ear.hears(number)


def test_opening_a_watch_that_the_system_refuses_gives_an_empty_watch_and_leaks_no_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, before = SystemThreads(), numbers()
    assert isinstance(open_watch(f"{path}-nowhere", threads), NoWatch)

    def refuse(*_: object) -> int:
        raise OSError(24, "Too many open files")

    path.touch()
    monkeypatch.setattr(os, "eventfd", refuse)
    assert isinstance(open_watch(str(path), threads), NoWatch)
    assert numbers() == before


def test_a_watch_is_closed_with_its_notifier_and_not_inherited(here: SqliteDatabase) -> None:
    before = numbers()
    with listening(here):
        made = numbers() - before
        assert len(made) == 2
        assert not any(os.get_inheritable(number) for number in made)
    assert numbers() == before


def test_a_notifier_that_cannot_start_its_thread_leaves_nothing_open(here: SqliteDatabase) -> None:
    class NoThreads(SystemThreads):
        def start(self, *_: object) -> threading.Thread:
            raise RuntimeError("can't start new thread")

    before = numbers()
    notifier = SqliteNotifier(here, NoThreads(), Settings(url="sqlite:///unused.db"))
    with pytest.raises(RuntimeError):
        notifier.start()
    notifier.close()
    assert numbers() == before


@pytest.mark.parametrize("name", ["a b.db", "ärger ☃.db", "100%#?&.db", "two\nlines.db", "'\".db"])
def test_files_of_any_name_have_their_log_watched(tmp_path: Path, name: str) -> None:
    with (
        opened(tmp_path / name) as here,
        opened(tmp_path / name) as elsewhere,
        listening(here) as ear,
    ):
        add(elsewhere, ("t_1", "one"))
        assert ear.hears(1)


def test_a_log_is_watched_beside_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "deep" / "real.db")
    with (
        opened(tmp_path / "deep" / "real.db") as elsewhere,
        opened(tmp_path / "link.db") as here,
        listening(here) as ear,
    ):
        add(elsewhere, ("t_1", "one"))
        assert ear.hears(1)


def test_a_file_that_takes_the_place_of_another_is_watched_instead(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    with log.open("ab", buffering=0) as old, closing(Inotify(str(log))) as watch:
        old.write(b"x")
        assert watch.wait(PATIENCE)
        log.unlink()
        assert not watch.wait(0.001)
        log.touch()
        assert watch.wait(0.001)
        # It says that the old one is no longer watched.
        assert watch.wait(PATIENCE)
        old.write(b"x")
        assert not watch.wait(0.001)
        log.write_bytes(b"x")
        assert watch.wait(PATIENCE)


def test_a_store_whose_file_is_gone_is_closed_as_ever(path: Path, here: SqliteDatabase) -> None:
    with listening(here, watch=0.001) as ear:
        for each in path.parent.iterdir():
            each.unlink()
        here.foreign_commits.look()
    assert ear.count == 0


FORKED = """
import os, sys, threading
from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from holdfast.settings import Settings

settings = Settings(url=sys.argv[1], watch=3600.0)
engine = Engine(sys.argv[1], settings=settings).start()
if not (child := os.fork()):
    engine.notifier.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
heard = threading.Event()
engine.notifier.subscribe(heard.set, own=False)
other = Engine(sys.argv[1])
other.commits.start()
other.tasks.create(NewTask(title="x"))
assert heard.wait(20)
other.close()
engine.close()
"""


def test_a_forked_child_that_closes_leaves_its_parent_listening(sqlite_url: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", FORKED, sqlite_url]
    subprocess.run(command, check=True, env=environment, timeout=60)
