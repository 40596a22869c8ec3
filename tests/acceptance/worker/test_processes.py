"""Commands as real processes: fed, read, and ended with everything they started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from holdfast.worker.steps.command import CannotStart, Command, CommandLimits
from holdfast.worker.steps.process import Process
from tests.acceptance.worker.watched_attempt import CLOCK, Watched, alive, program, run
from tests.race.racers import eventually

MEGABYTE = 1024 * 1024

# It starts two more that ignore what they are told, one of them in a session and with an
# environment of its own, and a third whose parent has ended; then all say who they are.
FAMILY = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
STAY = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
STAY += "os.write(1, b'%d ' % os.getpid()); signal.pause()"
ME = [sys.executable, "-I", "-S", "-c", STAY]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(ME[0], ME, {})
    os._exit(0)
os.wait()
for _ in range(2):
    if os.fork() == 0:
        os.execv(ME[0], ME)
os.write(1, b"%d " % os.getpid())
signal.pause()
"""


def pids(watched: Watched) -> list[int]:
    return [int(each) for each in watched.out.split()]


class AllThere(Watched):
    """Is over when four processes have said who they are."""

    def on_output(self, data: bytes, *, error: bool) -> None:
        self._over_at = b" " if (self.out + data).count(b" ") == 4 else None
        super().on_output(data, error=error)


def test_a_command_is_told_apart_by_its_output_its_errors_and_its_exit_code() -> None:
    ended, watched = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ended.code, ended.stop_reason, watched.out, watched.err) == (
        3,
        None,
        b"out\n",
        b"err\n",
    )


def test_a_command_killed_by_a_signal_says_which() -> None:
    ended, _ = run("sh", "-c", "kill -9 $$")
    assert (ended.code, ended.abandoned) == (-9, False)


def test_the_input_and_the_output_of_a_command_never_wait_for_each_other() -> None:
    size = 8 * MEGABYTE
    text = f"import sys; sys.stdout.buffer.write(b'o' * {size}); print(len(sys.stdin.read()))"
    ended, watched = run(*program(text), given=b"i" * size)
    assert ended.code == 0
    assert watched.out == b"o" * size + b"%d\n" % size


def test_a_command_that_does_not_read_what_it_is_given_is_none_the_worse() -> None:
    ended, _ = run("true", given=b"i" * 8 * MEGABYTE)
    assert ended.code == 0


@pytest.mark.parametrize("name", ["no-such-command", "/etc", "./no\ud800such"])
def test_a_command_that_cannot_be_run_says_why(name: str) -> None:
    with pytest.raises(CannotStart, match="cannot be run"):
        run(name)


def test_a_folder_that_is_not_there_is_said_by_its_name(tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    command = Command(arguments=("true",), environment={}, directory=lost)
    with pytest.raises(CannotStart, match=f"{lost} cannot be run: No such file"):
        Process(command, CommandLimits(), Watched(), CLOCK).run()


def test_a_command_that_is_looked_for_in_a_folder_says_in_which(tmp_path: Path) -> None:
    command = Command(arguments=("./tool.sh",), environment={}, directory=tmp_path)
    told = f"./tool.sh cannot be run: No such file or directory in {tmp_path}$"
    with pytest.raises(CannotStart, match=told):
        Process(command, CommandLimits(), Watched(), CLOCK).run()
    with pytest.raises(CannotStart, match=f"in {Path.cwd()}$"):
        run("./no-such-tool.sh")


def test_an_environment_arrives_as_it_was_given() -> None:
    given = {"PATH": os.environ["PATH"], "ODD": "a\nb\udcff", "LANG": "C"}
    _, watched = run("env", "-0", environment=given)
    got = set(watched.out.rstrip(b"\0").split(b"\0"))
    assert got == {os.fsencode(f"{name}={value}") for name, value in given.items()}


def test_a_command_leads_a_session_of_its_own_and_hears_every_signal() -> None:
    text = "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))"
    _, watched = run(*program(text))
    assert watched.out == b"True\n"
    _, watched = run("grep", "-E", "SigIgn|SigBlk", "/proc/self/status")
    blocked, ignored = (int(each, 16) for each in watched.out.split()[1::2])
    # Those beyond belong to the C library, which lets nobody set them.
    assert (blocked, ignored & (1 << signal.SIGSYS) - 1) == (0, 0)


def test_no_process_of_a_command_is_alive_two_seconds_after_its_attempt_is_over() -> None:
    ended, watched = run(*program(FAMILY), watched=AllThere())
    assert watched.over_since is not None
    assert CLOCK.monotonic() < watched.over_since + 2
    assert len(pids(watched)) == 4
    assert alive(pids(watched)) == []
    assert (ended.stop_reason, ended.code, ended.processes_ended, ended.processes_left) == (
        "over",
        -9,
        4,
        0,
    )


def test_a_process_that_a_command_leaves_behind_is_ended_with_the_command() -> None:
    ended, watched = run("sh", "-c", "setsid sleep 1000 & echo $!; exec >&-; exit 5")
    assert (ended.code, ended.stop_reason, ended.processes_left) == (5, None, 0)
    assert ended.processes_ended >= 1
    assert alive(pids(watched)) == []


def test_a_command_that_hears_it_has_time_to_leave_in_order() -> None:
    text = "trap 'echo left; exit 0' TERM; echo there; while :; do sleep 0.01; done"
    ended, watched = run("sh", "-c", text, watched=Watched(over_at=b"there\n"))
    assert watched.out == b"there\nleft\n"
    assert (ended.stop_reason, ended.code) == ("over", 0)


def test_a_command_that_runs_too_long_is_ended() -> None:
    ended, watched = run("sh", "-c", "echo $$; sleep 1000", timeout=0.2)
    assert (ended.stop_reason, ended.code) == ("timeout", -15)
    assert alive(pids(watched)) == []


def test_a_command_that_is_silent_too_long_is_ended_and_one_that_talks_is_not() -> None:
    ended, _ = run("sleep", "1000", idle_timeout=0.2)
    assert (ended.stop_reason, ended.code) == ("idle", -15)
    talks = "for n in 1 2 3 4 5 6 7 8; do echo $n >&2; sleep 0.1; done"
    ended, watched = run("sh", "-c", talks, idle_timeout=0.6)
    assert (ended.stop_reason, ended.code) == (None, 0)
    assert len(watched.err.split()) == 8


def test_a_keeper_ends_a_command_whose_lease_has_run_out_without_being_told() -> None:
    ended, watched = run("sh", "-c", "echo $$; sleep 1000", watched=Watched(lease=0.2))
    assert (ended.stop_reason, ended.code) == (None, -15)
    assert alive(pids(watched)) == []


class KillsKeeper(Watched):
    def on_begin(self, keeper_id: int, command_id: int, started: str) -> None:
        super().on_begin(keeper_id, command_id, started)
        os.kill(keeper_id, signal.SIGKILL)


def test_a_command_whose_keeper_is_killed_dies_with_it() -> None:
    ended, watched = run("sleep", "1000", watched=KillsKeeper())
    assert (ended.abandoned, ended.code) == (True, None)
    assert eventually(lambda: alive([watched.command]) == [])
