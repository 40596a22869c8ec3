"""Workers that are killed with -9 while a command runs: nothing of it stays alive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.steps.orphans import CommandRecord, end_orphans, make_record
from holdfast.worker.steps.process_keeper import find_start
from tests.acceptance.worker.watched_attempt import alive
from tests.programs import running
from tests.race.racers import eventually

# A worker of one command, which starts another one in a session of its own that ignores SIGTERM.
WORKER = """
import os, sys, threading
from pathlib import Path
from typing import Any
from dataclasses import replace
from holdfast.worker.steps.orphans import make_record
from holdfast.worker.files.state_paths import StatePath
from tests.acceptance.worker.watched_attempt import Watched, run

CHILD = "trap '' TERM; echo $$ >&2; while :; do sleep 0.05; done"

class Worker(Watched):
    def on_begin(self, keeper_id, command_id, started):
        super().on_begin(keeper_id, command_id, started)
        record_now = replace(record, command=command_id, command_started=started)
        record_now.write(records)
        print("began", keeper_id, command_id, flush=True)

    def on_output(self, data, *, error):
        print("child", data.decode().strip(), flush=True)

record = make_record("t_1", 2)
records = StatePath(Path(sys.argv[1]))
record.write(records)
os.environ |= {"HOLDFAST_TASK": "t_1", "HOLDFAST_ATTEMPT": "2"}
command = 'setsid sh -c "$0" & wait'
run("sh", "-c", command, CHILD, watched=Worker())
"""


def said(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdout is not None
    return child.stdout.readline().split()


@contextmanager
def worker(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A worker whose command runs; with the ids of the keeper, the command and its child."""
    records = folder / "records"
    with running(WORKER, str(records), folder) as process:
        lines = {line[0]: line[1:] for line in (said(process), said(process))}
        yield process, [int(each) for each in (*lines["began"], *lines["child"])]


def test_a_killed_worker_takes_its_commands_and_all_they_started_with_it(tmp_path: Path) -> None:
    with worker(tmp_path) as (process, pids):
        assert alive(pids) == pids
        process.kill()
        process.wait()
        assert eventually(lambda: alive(pids) == [])


def test_a_worker_that_lives_keeps_its_commands(tmp_path: Path) -> None:
    with worker(tmp_path) as (_, pids):
        assert end_orphans(StatePath(tmp_path) / "records") == []
        assert alive(pids) == pids
        assert len(list((tmp_path / "records").iterdir())) == 1


def test_a_process_left_when_keeper_and_worker_are_killed_ends_with_the_next_start(
    tmp_path: Path,
) -> None:
    with worker(tmp_path) as (process, pids):
        keeper, command, child = pids
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(keeper, signal.SIGKILL)
        process.kill()
        process.wait()
        assert eventually(lambda: alive([keeper, command]) == [])
        assert alive([child]) == [child]
        assert [each.task for each in end_orphans(StatePath(tmp_path) / "records", grace=0.1)] == [
            "t_1"
        ]
        assert alive(pids) == []
        assert list((tmp_path / "records").iterdir()) == []


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that belongs to nobody here, but has got the number of one that did."""
    yield from _stranger()


@pytest.fixture
def leader() -> Iterator[int]:
    """A stranger that has begun a session of its own, which has that number too."""
    yield from _stranger(start_new_session=True)


def _stranger(**options: Any) -> Iterator[int]:
    with subprocess.Popen(["/bin/sleep", "1000"], **options) as process:
        yield process.pid
        assert process.poll() is None
        process.kill()


def gone(**fields: Any) -> CommandRecord:
    """The record of a command whose worker is gone."""
    return replace(make_record("t_1", 1), worker_started="0", **fields)


def test_a_stranger_that_got_the_number_of_a_command_is_left_alone(
    tmp_path: Path, stranger: int
) -> None:
    gone(command=stranger, command_started="1").write(StatePath(tmp_path))
    assert len(end_orphans(StatePath(tmp_path))) == 1
    assert find_start(stranger)
    assert list(tmp_path.iterdir()) == []


def test_a_stranger_that_leads_a_session_of_that_number_is_left_alone(
    tmp_path: Path, leader: int
) -> None:
    gone(command=leader, command_started="1", since="0").write(StatePath(tmp_path))
    assert len(end_orphans(StatePath(tmp_path))) == 1
    assert find_start(leader)


def test_a_worker_among_other_process_numbers_is_another_machines_affair(tmp_path: Path) -> None:
    gone(processes="pid:[1]").write(StatePath(tmp_path))
    assert end_orphans(StatePath(tmp_path)) == []
    assert len(list(tmp_path.iterdir())) == 1


def test_a_stranger_of_another_boot_or_another_machine_is_left_alone(
    tmp_path: Path, stranger: int
) -> None:
    same: dict[str, Any] = {"command": stranger, "command_started": find_start(stranger)}
    gone(boot="another", **same).write(StatePath(tmp_path))
    assert len(end_orphans(StatePath(tmp_path))) == 1
    assert list(tmp_path.iterdir()) == []
    gone(host="another", **same).write(StatePath(tmp_path))
    assert end_orphans(StatePath(tmp_path)) == []
    assert len(list(tmp_path.iterdir())) == 1
    assert find_start(stranger)


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"task": "t_1"})])
def test_a_record_that_cannot_be_read_is_left_alone(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t_1.1.json").write_text(text)
    assert end_orphans(StatePath(tmp_path)) == []
    assert "cannot be read" in caplog.text
