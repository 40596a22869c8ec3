"""Processes that are stopped, by Ctrl-Z or SIGSTOP, while they write a SQLite file."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Holdfast
from holdfast.errors import StoreUnreachable
from holdfast.model.task import NewTask
from tests.acceptance.terminals import ROOT, environment, holdfast

PATIENCE = 30.0
CTRL_Z = b"\x1a"
# A worker that is asked to stop while another thread has a transaction open; the thread ends it
# when it has seen that the stop waits for it, and the worker goes on when it is continued.
WORKER = """
import signal, sys, threading, time
from holdfast import Holdfast
from holdfast.stop_signals import write_transactions

hf = Holdfast(sys.argv[1])

@hf.task
def job(): print("ran", flush=True)

def hold():
    while signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
        time.sleep(0.001)
    with hf.transaction():
        print("writes", flush=True)
        while not write_transactions.stopping:
            time.sleep(0.001)
        print("asked", flush=True)
    job.enqueue()
    print("wrote again", flush=True)

threading.Thread(target=hold).start()
hf.worker().run()
"""
# The main thread is inside the transaction when the signal comes.
PROGRAM = """
import os, signal, sys
from holdfast import Holdfast
from holdfast.stop_signals import stop_between_transactions

hf = Holdfast(sys.argv[1])
with stop_between_transactions():
    with hf.transaction():
        for _ in range(int(sys.argv[2])):
            os.kill(os.getpid(), signal.SIGTSTP)
            print("goes on", flush=True)
    print("went on", flush=True)
"""
# The main thread has transactions on two files, and the inner one ends after the signal.
TWO_FILES = """
import os, signal, sys
from holdfast import Holdfast
from holdfast.stop_signals import stop_between_transactions

outer, inner = Holdfast(sys.argv[1]), Holdfast(sys.argv[2])
with stop_between_transactions():
    with outer.transaction():
        with inner.transaction():
            os.kill(os.getpid(), signal.SIGTSTP)
        print("goes on", flush=True)
    print("went on", flush=True)
"""
# Another thread has a transaction open, and begins one on a second file while a stop waits.
TWO_FILES_BESIDE = """
import os, signal, sys, threading, time
from holdfast import Holdfast
from holdfast.stop_signals import stop_between_transactions, write_transactions

outer, inner = Holdfast(sys.argv[1]), Holdfast(sys.argv[2])
begun = threading.Event()

def hold():
    with outer.transaction():
        begun.set()
        while not write_transactions.stopping:
            time.sleep(0.001)
        with inner.transaction():
            print("goes on", flush=True)

with stop_between_transactions():
    beside = threading.Thread(target=hold)
    beside.start()
    begun.wait()
    os.kill(os.getpid(), signal.SIGTSTP)
    beside.join()
    print("went on", flush=True)
"""
# The main thread is asked to stop inside a dry run, or inside the upgrade of a new file.
INTERNAL = """
import os, signal, sys
from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.stop_signals import stop_between_transactions
from holdfast.store.sqlite import database

def stop(*_):
    os.kill(os.getpid(), signal.SIGTSTP)
    print("goes on", flush=True)

apply = database.SqliteMigrator.apply
if sys.argv[2] == "upgrade":
    database.SqliteMigrator.apply = lambda it, each: (each.number == 1 and stop(), apply(it, each))
with stop_between_transactions():
    hf = Holdfast(sys.argv[1])
    hf.tasks.list()
    if sys.argv[2] == "dry run":
        engine_of(hf).database.dry_run(stop)
    print("went on", flush=True)
"""
# A short command is asked to stop inside its one transaction.
COMMAND = """
import os, signal, sys
from holdfast.cli.main import main
from holdfast.store.sqlite.transaction import SqliteTransaction

check = SqliteTransaction.check

def stop(it):
    os.kill(os.getpid(), signal.SIGTSTP)
    SqliteTransaction.check = check
    check(it)

SqliteTransaction.check = stop
main(["task", "add", "late", "--db", sys.argv[1]])
print("went on", flush=True)
"""
# Nothing puts off SIGSTOP.
STOPPED = """
import os, signal, sys
from holdfast import Holdfast

hf = Holdfast(sys.argv[1])
with hf.transaction():
    os.kill(os.getpid(), signal.SIGSTOP)
print("went on", flush=True)
"""


# The part of a shell: the program is its job, in the foreground of a terminal.
SHELL = """
import fcntl, os, signal, subprocess, sys, termios
terminal, text, url = int(sys.argv[1]), *sys.argv[2:]
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
job = subprocess.Popen([sys.executable, "-c", text, url], process_group=0)
os.tcsetpgrp(terminal, job.pid)
_, status = os.waitpid(job.pid, os.WUNTRACED)
print("stopped" if os.WIFSTOPPED(status) else status, flush=True)
sys.stdin.readline()
os.kill(job.pid, signal.SIGCONT)
sys.stdin.readline()
os.killpg(job.pid, signal.SIGKILL)
"""


@contextmanager
def _program(text: str, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A group of its own in this session: the system does not stop a group without a parent.
        **({"process_group": 0} | options),
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def _read_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _send_line(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def _await_stop(child: subprocess.Popen[str]) -> None:
    """Wait until the system has stopped the whole process."""
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status


def _take_write_lock(url: str) -> None:
    """Take the write lock, or fail at once."""
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    connection.close()


def test_ctrl_z_stops_a_worker_after_its_transaction_and_leaves_the_file_free(
    sqlite_store_url: str,
) -> None:
    keyboard, terminal = pty.openpty()
    arguments = (str(terminal), WORKER, sqlite_store_url)
    options = {"start_new_session": True, "process_group": None, "pass_fds": (terminal,)}
    with _program(SHELL, *arguments, **options) as shell:
        assert _read_line(shell) == "writes"
        os.write(keyboard, CTRL_Z)
        assert _read_line(shell) == "asked"
        assert _read_line(shell) == "stopped"
        _take_write_lock(sqlite_store_url)
        _send_line(shell)
        assert {_read_line(shell), _read_line(shell)} == {"wrote again", "ran"}
        _send_line(shell)
        shell.wait(PATIENCE)
    os.close(keyboard)
    os.close(terminal)


def test_a_stop_in_the_middle_of_the_main_threads_transaction_waits_for_its_end(
    sqlite_store_url: str,
) -> None:
    with _program(PROGRAM, sqlite_store_url, "1") as child:
        assert _read_line(child) == "goes on"
        _await_stop(child)
        _take_write_lock(sqlite_store_url)
        os.kill(child.pid, signal.SIGCONT)
        assert _read_line(child) == "went on"


@pytest.mark.parametrize("text", [TWO_FILES, TWO_FILES_BESIDE])
def test_a_stop_waits_for_the_outermost_transaction_of_a_thread(
    sqlite_store_url: str, tmp_path: Path, text: str
) -> None:
    with _program(text, sqlite_store_url, f"sqlite:///{tmp_path}/inner.db") as child:
        _await_stop(child)
        _take_write_lock(sqlite_store_url)
        os.kill(child.pid, signal.SIGCONT)
        assert [_read_line(child), _read_line(child)] == ["goes on", "went on"]


@pytest.mark.parametrize("what", ["dry run", "upgrade"])
def test_a_dry_run_and_an_upgrade_end_before_the_process_stops(tmp_path: Path, what: str) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    with _program(INTERNAL, url, what) as child:
        _await_stop(child)
        _take_write_lock(url)
        os.kill(child.pid, signal.SIGCONT)
        assert [_read_line(child), _read_line(child)] == ["goes on", "went on"]


def test_a_short_command_ends_its_transaction_before_it_stops(sqlite_store_url: str) -> None:
    with _program(COMMAND, sqlite_store_url.removeprefix("sqlite:///")) as child:
        _await_stop(child)
        _take_write_lock(sqlite_store_url)
        os.kill(child.pid, signal.SIGCONT)
        assert child.communicate(timeout=PATIENCE)[0].endswith("went on\n")


def test_a_second_stop_does_not_wait_for_the_transaction(sqlite_store_url: str) -> None:
    with _program(PROGRAM, sqlite_store_url, "2") as child:
        assert _read_line(child) == "goes on"
        _await_stop(child)
        with pytest.raises(apsw.BusyError):
            _take_write_lock(sqlite_store_url)
        os.kill(child.pid, signal.SIGCONT)
        assert [_read_line(child), _read_line(child)] == ["goes on", "went on"]
        _take_write_lock(sqlite_store_url)


def test_whoever_waits_for_a_stopped_process_is_told_its_number_and_what_to_type(
    sqlite_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(sqlite_store_url, patience=2.5) as hf, _program(STOPPED, sqlite_store_url) as it:
        _await_stop(it)
        named = f"process {it.pid} ("
        with pytest.raises(StoreUnreachable) as refused, hf.transaction():
            pass
        assert named in str(refused.value)
        assert "which is stopped, has kept" in str(refused.value)
        assert f"`kill -CONT {it.pid}` lets it go on" in str(refused.value)
        # While it waits, and not only in the end.
        (warned,) = [each for each in caplog.messages if named in each]
        assert "locked for 2" in warned
        os.kill(it.pid, signal.SIGCONT)
        assert _read_line(it) == "went on"
        with hf.transaction():
            pass


def test_doctor_and_why_name_the_stopped_process_that_keeps_the_file_locked(
    sqlite_store_url: str, tmp_path: Path
) -> None:
    with Holdfast(sqlite_store_url) as hf:
        task = hf.tasks.create(NewTask(title="late")).id
    with _program(STOPPED, sqlite_store_url) as it:
        _await_stop(it)
        for asked in (("doctor",), ("why", task)):
            place = ("--db", sqlite_store_url.removeprefix("sqlite:///"))
            told = holdfast(tmp_path, *asked, *place, COLUMNS="1000")
            assert f"`kill -CONT {it.pid}` lets it go on" in told.stdout, told
