"""The pool of worktrees: each is lent to one attempt, and handed on when nothing runs in it."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.worker.workspaces.port_blocks import PORTS, hold_ports
from holdfast.worker.workspaces.worktree_pool import LentWorktree, WorktreePool, WorktreeRecord


def make_record(**fields: object) -> WorktreeRecord:
    known = {"store": "s", "line": "r_1", "run": "r_1", "repository": "/r", "task": "t_1"}
    return WorktreeRecord(**known | {"attempt": 1} | fields)  # type: ignore[arg-type]


def lend(folder: Path, *, stopped: bool = True) -> LentWorktree:
    return WorktreePool(folder, lambda *_: stopped).lend("r_1")


def test_a_worktree_that_an_attempt_has_is_not_lent_again(tmp_path: Path) -> None:
    with lend(tmp_path) as first, lend(tmp_path) as second:
        assert (first.name, second.name) == ("r_1.1", "r_1.2")
    with lend(tmp_path) as again:
        assert again.name == "r_1.1"


@pytest.mark.parametrize(
    ("record", "stopped", "name"),
    [
        (make_record(), True, "r_1.1"),
        (make_record(), False, "r_1.2"),
        (make_record(task=""), False, "r_1.1"),
        (make_record(abandoned=True), True, "r_1.2"),
    ],
)
def test_a_worktree_is_handed_on_only_when_no_process_is_left_in_it(
    tmp_path: Path, record: WorktreeRecord, *, stopped: bool, name: str
) -> None:
    with lend(tmp_path) as first:
        first.write(record)
    with lend(tmp_path, stopped=stopped) as second:
        assert second.name == name
        assert second.before == (record if name == "r_1.1" else None)


def test_a_lock_that_was_discarded_keeps_nobody_from_a_new_one(tmp_path: Path) -> None:
    lock = tmp_path / "r_1.1.lock"
    with lend(tmp_path) as first:
        first.write(make_record())
        # Whoever comes now opens the lock that is about to go.
        waiting = os.open(lock, os.O_RDWR)
        first.discard()
        assert list(tmp_path.iterdir()) == []
    with lend(tmp_path) as second:
        assert second.name == "r_1.1"
        fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with lend(tmp_path) as third:
            assert third.name == "r_1.2"
    os.close(waiting)


def test_a_lock_that_goes_while_it_is_taken_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = fcntl.flock

    def discard_first(descriptor: int, how: int) -> None:
        taken(descriptor, how)
        (tmp_path / "r_1.1.lock").unlink(missing_ok=True)

    monkeypatch.setattr(fcntl, "flock", discard_first)
    with lend(tmp_path) as lent:
        assert lent.name == "r_1.2"


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    with lend(tmp_path) as first:
        first.write(make_record())
    (tmp_path / "r_1.1.json").write_text("{")
    with lend(tmp_path) as again:
        assert (again.name, again.before) == ("r_1.1", None)


def test_each_workspace_has_free_ports_of_its_own(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(hold_ports(tmp_path))
        taken = stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", first + PORTS + 3))
        taken.listen()
        second = stack.enter_context(hold_ports(tmp_path))
        assert second >= first + 2 * PORTS
    with hold_ports(tmp_path) as again:
        assert again == first


def test_a_worktree_is_not_handed_on_while_a_process_that_nobody_knows_is_in_it(
    tmp_path: Path,
) -> None:
    with lend(tmp_path) as first:
        (first.path / "folder").mkdir(parents=True)
        first.write(make_record())
    with subprocess.Popen(
        ["/bin/sleep", "60"], cwd=first.path / "folder", env={}, start_new_session=True
    ) as process:
        try:
            with lend(tmp_path) as second:
                assert second.name == "r_1.2"
            pool = WorktreePool(tmp_path, lambda *_: True)
            assert list(pool.list_free()) == []
        finally:
            process.kill()
    with lend(tmp_path) as again:
        assert again.name == "r_1.1"
