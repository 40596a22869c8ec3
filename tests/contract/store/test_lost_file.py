"""A SQLite store whose file is removed or replaced while it is open: refused, and saved."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from holdfast import Context, Holdfast, NewTask
from holdfast.clock import ManualClock
from holdfast.engine.engine import engine_of
from holdfast.errors import StoreGone
from holdfast.store.database import Database, Transaction
from holdfast.store.sqlite import saved_copy
from holdfast.store.sqlite.file_identity import RETRY_SECONDS
from tests.contract.store.small_store import add, opened, tasks


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "store.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{path}", clock=ManualClock()) as database:
        add(database, ("t_1", "one"))
        yield database


def end(path: Path) -> list[Path]:
    return [path, Path(f"{path}-wal"), Path(f"{path}-shm")]


def unlink(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    for each in end(path):
        each.unlink()
    with opened(f"sqlite:///{path}", clock=ManualClock()) as other:
        add(other, ("t_9", "another store"))


def lose_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def lose_index(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def lose_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


LOSSES = [unlink, rename, replace, lose_log, lose_index, lose_folder]
Loss = Callable[[Path], None]


def saved_tasks(saved: Path | None) -> set[str]:
    assert saved is not None
    with closing(apsw.Connection(str(saved), flags=apsw.SQLITE_OPEN_READONLY)) as copy:
        return {str(row[0]) for row in copy.execute("SELECT id FROM holdfast_task")}


@pytest.mark.parametrize("lose", LOSSES)
def test_a_commit_into_a_lost_file_is_refused_and_the_file_is_saved(
    database: Database, path: Path, lose: Loss
) -> None:
    lose(path)
    with pytest.raises(StoreGone, match="holdfast db restore") as error:
        add(database, ("t_2", "two"))
    saved = error.value.saved
    assert saved_tasks(saved) == {"t_1"}
    assert saved is not None
    assert saved.parent == path.parent
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    with pytest.raises(StoreGone):
        tasks(database)
    assert list(path.parent.glob("*.saved-*")) == [saved]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_file_lost_during_a_transaction_acknowledges_nothing(
    database: Database, path: Path, lose: Loss
) -> None:
    def work(transaction: Transaction) -> None:
        transaction.change("add_tasks", rows=[("t_2", "two")])
        lose(path)

    with pytest.raises(StoreGone) as error:
        database.transact(work)
    # It was written, and nobody was told so.
    assert saved_tasks(error.value.saved) == {"t_1", "t_2"}


@pytest.mark.parametrize("lose", [unlink, replace, lose_folder])
def test_readers_are_told_that_the_file_is_lost(database: Database, path: Path, lose: Loss) -> None:
    assert set(tasks(database)) == {"t_1"}
    lose(path)
    with pytest.raises(StoreGone) as error:
        tasks(database)
    assert saved_tasks(error.value.saved) == {"t_1"}


def test_a_transaction_of_the_application_is_refused_too(database: Database, path: Path) -> None:
    def write() -> None:
        with database.begin() as connection:
            database.join(connection).change("add_tasks", rows=[("t_2", "two")])
            unlink(path)

    with pytest.raises(StoreGone) as error:
        write()
    assert saved_tasks(error.value.saved) == {"t_1", "t_2"}
    with pytest.raises(StoreGone):
        database.dry_run(lambda tx: tx.read("tasks"))
    assert not path.exists()


def test_two_processes_of_a_lost_store_save_a_copy_each(database: Database, path: Path) -> None:
    with opened(f"sqlite:///{path}", clock=ManualClock()) as other:
        unlink(path)
        copies = set()
        for each in (database, other):
            with pytest.raises(StoreGone) as error:
                add(each, ("t_2", "two"))
            copies.add(error.value.saved)
    assert len(copies) == 2
    assert [saved_tasks(each) for each in copies] == [{"t_1"}] * 2


def test_a_copy_that_is_removed_with_its_folder_is_written_again(path: Path) -> None:
    with opened(f"sqlite:///{path}", clock=ManualClock()) as database:
        add(database, ("t_1", "one"))
        shutil.rmtree(path.parent)
        with pytest.raises(StoreGone) as error:
            tasks(database)
        shutil.rmtree(path.parent)
    assert error.value.saved is not None
    assert list(path.parent.glob("*.saved-*")) == [error.value.saved]
    assert saved_tasks(error.value.saved) == {"t_1"}
    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_a_file_that_was_removed_a_moment_before_the_end_is_saved(path: Path) -> None:
    with opened(f"sqlite:///{path}", clock=ManualClock()) as database:
        add(database, ("t_1", "one"))
        unlink(path)
    (saved,) = path.parent.glob("*.saved-*")
    assert saved_tasks(saved) == {"t_1"}


def test_listeners_are_told_of_a_lost_store_once_it_is_saved(
    database: Database, path: Path
) -> None:
    told: list[StoreGone] = []
    database.on_gone(told.append)
    unlink(path)
    for _ in range(2):
        with pytest.raises(StoreGone):
            tasks(database)
    database.on_gone(told.append)
    assert [saved_tasks(each.saved) for each in told] == [{"t_1"}] * 2


def test_a_link_to_the_file_and_a_second_name_of_it_do_no_harm(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    # The file that it leads to is made where it leads.
    with opened(f"sqlite:///{link}", clock=ManualClock()) as database:
        os.link(path, path.with_name("second.db"))
        add(database, ("t_1", "one"))
        assert tasks(database) == {"t_1": "one"}
        link.unlink()
        with pytest.raises(StoreGone):
            tasks(database)


def test_a_program_hears_of_it_in_its_calls_and_where_it_waits(path: Path) -> None:
    with Holdfast(f"sqlite:///{path}", recovery=0.05) as hf:
        job = hf.tasks.create(NewTask(title="one"))
        waiting = engine_of(hf).outcomes.wait(job.id)
        unlink(path)
        with pytest.raises(StoreGone):
            waiting.result(10)
        with pytest.raises(StoreGone) as error:
            hf.tasks.create(NewTask(title="two"))
        with pytest.raises(StoreGone):
            hf.tasks.get(job.id)
    assert saved_tasks(error.value.saved) == {job.id}


def test_a_worker_of_a_program_ends_with_the_reason(path: Path) -> None:
    with Holdfast(f"sqlite:///{path}", recovery=0.05) as hf:
        begun, over = threading.Event(), threading.Event()

        @hf.task
        def job(context: Context) -> None:
            begun.set()
            while not context.ended:
                over.wait(0.01)

        job.enqueue()
        worker = hf.worker()

        def remove() -> None:
            begun.wait(10)
            unlink(path)

        threading.Thread(target=remove).start()
        with pytest.raises(StoreGone):
            worker.run()


def test_a_copy_of_a_lost_store_that_cannot_be_saved_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    with opened(f"sqlite:///{path}", clock=clock) as database:
        add(database, ("t_1", "one"))
        told: list[StoreGone] = []
        database.on_gone(told.append)
        full = path.parent.parent / "full"
        full.mkdir()
        monkeypatch.setattr(
            saved_copy, "_folders_to_try", lambda _: iter([full / "file" / "below"])
        )
        (full / "file").touch()
        unlink(path)
        for _ in range(2):
            with pytest.raises(StoreGone, match="cannot be saved") as error:
                tasks(database)
            assert error.value.saved is None
        assert not told
        (full / "file").unlink()
        clock.advance(RETRY_SECONDS)
        with pytest.raises(StoreGone, match="db restore") as error:
            tasks(database)
        assert saved_tasks(error.value.saved) == {"t_1"}
        assert len(told) == 1


def test_no_empty_store_begins_in_the_place_of_one_that_was_saved(path: Path) -> None:
    with opened(f"sqlite:///{path}", clock=ManualClock()) as database:
        add(database, ("t_1", "one"))
        unlink(path)
        with pytest.raises(StoreGone):
            tasks(database)
    with pytest.raises(StoreGone, match="db restore") as error, opened(f"sqlite:///{path}"):
        pass
    assert error.value.saved is not None
    assert not path.exists()
    error.value.saved.unlink()
    with opened(f"sqlite:///{path}") as database:
        assert tasks(database) == {}
