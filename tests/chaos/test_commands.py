"""Workers that are killed, or stopped past their lease, while a command of theirs runs."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import Holdfast
from holdfast.model.workflow.declarations import StepWork
from tests.acceptance.worker.watched_attempt import alive
from tests.chaos.journal import Journal
from tests.contract.worker.file_steps import enqueue
from tests.programs import running
from tests.race.racers import eventually

# One worker for one command, which writes down who it is and what it does: the first attempt
# waits for ever, the second one does the work.
WORKER = """
import os, signal, sys
from pathlib import Path
from holdfast import NewTask
from holdfast.engine.engine import engine_of
from tests.contract.worker.file_steps import file_steps

def stop_in_the_writer(hf):
    # Right after a commit: one that is stopped within holds up every other process of the store.
    stops = [lambda: os.kill(os.getpid(), signal.SIGSTOP)]
    engine_of(hf).on_end(lambda _: stops.pop()() if stops else None)
    hf.tasks.cancel(hf.tasks.create(NewTask(title="last", enqueue=False)).id)

with file_steps(sys.argv[1], Path(__file__).parent, lease=1.5, renewal=0.3) as steps:
    print("working", flush=True)
    if sys.stdin.readline() == "stop\\n":
        stop_in_the_writer(steps.hf)
        sys.stdin.readline()
"""
COMMAND = """
setsid sh -c 'echo $$ >> "$1"; while :; do sleep 0.05; done' - "$1" &
echo $$ >> "$1"
if [ $HOLDFAST_ATTEMPT = 1 ]; then wait; fi
echo $HOLDFAST_ATTEMPT >> "$2"
echo '{"by": "'$HOLDFAST_ATTEMPT'"}'
"""


class Errand:
    """A task that is a command, and what its attempts wrote down."""

    def __init__(self, hf: Holdfast, folder: Path) -> None:
        self._hf = hf
        self._pids, self._done = Journal(folder / "pids"), Journal(folder / "done")
        files = (str(folder / "pids"), str(folder / "done"))
        self.task_id = enqueue(hf, StepWork(command=("sh", "-c", COMMAND, "-", *files)))

    @property
    def pids(self) -> list[int]:
        return [int(pid) for (pid,) in self._pids.read()]

    def has_begun(self) -> bool:
        return len(self.pids) == 2

    def is_gone(self) -> bool:
        return alive(self.pids) == []

    def check(self) -> None:
        """It was done once, by the second attempt, and nothing of it is alive."""
        assert eventually(lambda: self._hf.tasks.get(self.task_id).terminal)
        assert self._hf.tasks.get(self.task_id).output == {"by": "2"}
        assert self._done.read() == [("2",)]
        attempts = self._hf.tasks.attempts(self.task_id)
        assert [each.outcome for each in attempts] == ["lost", "completed"]
        assert eventually(self.is_gone)


@contextmanager
def working(url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    with running(WORKER, url, folder) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        yield process


def say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def is_stopped(process: subprocess.Popen[str]) -> bool:
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def leave(process: subprocess.Popen[str]) -> None:
    """Let a worker go, which ends well."""
    _, errors = process.communicate("\n", timeout=20)
    assert process.returncode == 0, errors


def test_a_command_whose_worker_is_killed_ends_at_once_and_is_done_by_another(
    sqlite_url: str, tmp_path: Path
) -> None:
    with Holdfast(sqlite_url) as hf, working(sqlite_url, tmp_path) as first:
        errand = Errand(hf, tmp_path)
        assert eventually(errand.has_begun)
        first.kill()
        first.wait()
        assert eventually(errand.is_gone)
        with working(sqlite_url, tmp_path) as second:
            errand.check()
            leave(second)


def test_a_command_whose_worker_is_stopped_ends_with_its_lease_and_is_done_by_another(
    store_url: str, tmp_path: Path
) -> None:
    with Holdfast(store_url) as hf, working(store_url, tmp_path) as first:
        errand = Errand(hf, tmp_path)
        assert eventually(errand.has_begun)
        say(first, "stop")
        assert eventually(lambda: is_stopped(first))
        # Nobody but its keeper is there to end it.
        assert eventually(errand.is_gone)
        with working(store_url, tmp_path) as second:
            errand.check()
            first.send_signal(signal.SIGCONT)
            leave(first)
            leave(second)
        errand.check()
