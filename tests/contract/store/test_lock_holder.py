"""The process that is named for a lock has that very file locked, not one with the same number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store.sqlite import lock_holder
from holdfast.store.sqlite.lock_holder import find_lock_holder

SLEEPER = "import sys; held = [open(each) for each in sys.argv[1:]]; print(flush=True); input()"


class Locks:
    """A file and its index, and what the system would tell of the locks on them."""

    def __init__(self, folder: Path) -> None:
        self.file, self.index = folder / "store.db", folder / "store.db-shm"
        self.file.touch()
        self.index.touch()
        self.told = folder / "locks"

    def tell(self, pid: int, *, other_device: bool) -> None:
        found = self.index.stat()
        major, minor = os.major(found.st_dev), os.minor(found.st_dev)
        device = f"{major:02x}:{minor + other_device:02x}"
        self.told.write_text(f"1: POSIX  ADVISORY  WRITE {pid} {device}:{found.st_ino} 120 120\n")

    def named(self) -> int | None:
        holder = find_lock_holder(self.file, self.index)
        return None if holder is None else holder.pid


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locks:
    locks = Locks(tmp_path)
    monkeypatch.setattr(lock_holder, "_LOCKS", locks.told)
    return locks


@pytest.fixture
def sleeper(request: pytest.FixtureRequest, locks: Locks) -> Iterator[int]:
    """A process that has the index open, or not."""
    opened = [str(locks.index)] if request.param else []
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER, *opened],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.kill()


@pytest.mark.parametrize("sleeper", [False], indirect=True)
def test_a_lock_on_a_file_of_another_filesystem_names_nobody(locks: Locks, sleeper: int) -> None:
    locks.tell(sleeper, other_device=True)
    assert locks.named() is None


@pytest.mark.parametrize("sleeper", [False], indirect=True)
def test_a_lock_on_the_same_filesystem_names_its_process(locks: Locks, sleeper: int) -> None:
    locks.tell(sleeper, other_device=False)
    assert locks.named() == sleeper


@pytest.mark.parametrize("sleeper", [True], indirect=True)
def test_a_process_that_has_the_file_open_is_named_where_device_numbers_differ(
    locks: Locks, sleeper: int
) -> None:
    locks.tell(sleeper, other_device=True)
    assert locks.named() == sleeper
