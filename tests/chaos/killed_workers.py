"""Workers on git repositories in processes of their own, killed with -9 at a moment of choice."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import apsw

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.worker.workspaces.attempt_workspace import WorkspacePorts
from holdfast.worker.workspaces.upkeep import remove_unused_worktrees
from tests.chaos.processes import start_alone
from tests.contract.worker.git.repositories import run
from tests.contract.worker.workspaces.workspace_runs import WorkspaceRuns

LEASE = 0.4


@dataclass(frozen=True, kw_only=True)
class WorkerPlace:
    """The place of a worker: its store and its folder, with a home and a user of git."""

    url: str
    folder: Path
    home: str = "home"
    programs: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        user = self.folder / "user"
        return {
            "HOME": str(user),
            "XDG_CONFIG_HOME": str(user / ".config"),
            "HOLDFAST_HOME": str(self.folder / self.home),
        }

    @property
    def mark(self) -> bytes:
        """A variable in the environment of all that a worker starts."""
        return os.fsencode(f"HOLDFAST_TEST_PLACE={self.folder / self.home}")

    def enter(self) -> None:
        os.environ.update(self.environment)
        name, _, value = os.fsdecode(self.mark).partition("=")
        os.environ[name] = value
        if self.programs is not None:
            os.environ["PATH"] = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        os.chdir(self.folder)


def work(place: WorkerPlace, commit: int | None = None) -> None:
    """Be a worker until killed; `commit` is the transaction after whose end it kills itself."""
    os.setsid()
    place.enter()
    if commit is not None:
        apsw.connection_hooks.append(CommitWatch(commit).see)
    with (
        Holdfast(place.url, lease=LEASE, recovery=0.1, poll=0.1) as hf,
        hf.worker(agents=["*"], concurrency=4),
    ):
        signal.pause()


class CommitWatch:
    """Counts the transactions of this process that write, and kills it right after one of them."""

    def __init__(self, number: int) -> None:
        self._left = number

    def see(self, connection: apsw.Connection) -> None:
        wrote: list[str] = []

        def notice(event: dict[str, Any]) -> None:
            if event["code"] == apsw.SQLITE_TRACE_STMT:
                if event["sql"].lstrip().startswith(("INSERT", "UPDATE", "DELETE", "WITH")):
                    wrote.append(event["sql"])
            elif event["sql"] == "COMMIT" and wrote:
                wrote.clear()
                self._left -= 1
                if not self._left:
                    os.killpg(0, signal.SIGKILL)

        connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, notice)


@contextmanager
def worker(place: WorkerPlace, commit: int | None = None) -> Iterator[BaseProcess]:
    """A worker that is gone at the end of the block; what it started may live on."""
    with start_alone(work, place, commit) as process:
        yield process


def kill_everything(place: WorkerPlace, process: BaseProcess | None = None) -> None:
    """Kill with -9 whatever a worker has started, and the worker first."""
    if process is not None:
        process.kill()
    while found := [*find_processes(place)]:
        for each in found:
            kill_process(each)


def kill_with_keepers(place: WorkerPlace, process: BaseProcess) -> None:
    """Kill with -9 a worker and the keepers of its commands, which live on without them."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    for each in find_processes(place):
        with suppress(OSError):
            if b"process_keeper" in Path(f"/proc/{each}/cmdline").read_bytes():
                kill_process(each)
    process.kill()
    process.join()


def kill_process(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def find_processes(place: WorkerPlace) -> Iterator[int]:
    """The living processes that a worker of a place has started, or that are in its worktrees."""
    home = place.folder / place.home
    for each in Path("/proc").glob("[0-9]*"):
        if int(each.name) == os.getpid():
            continue
        with suppress(OSError):
            state = (each / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and (
                (each / "cwd").readlink().is_relative_to(home)
                or place.mark in (each / "environ").read_bytes().split(b"\0")
            ):
                yield int(each.name)


class Snapshot:
    """A copy of a folder, to begin at again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copy = folder.with_name(f"{folder.name}.copy")
        shutil.copytree(folder, self._copy, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self._folder)
        shutil.copytree(self._copy, self._folder, symlinks=True)


def deadly_git(folder: Path, deadly: str, then: str = "exit 1") -> Path:
    """A folder for the search path, whose git kills its worker before one of its calls.

    The calls are written to the file `calls` beside it. `deadly` is a test of the shell, which
    knows the number of the call as `$number`, and `then` is what git does after the kill.
    """
    calls, programs = folder / "calls", folder / "programs"
    programs.mkdir(parents=True)
    program = programs / "git"
    program.write_text(
        f"""#!/bin/sh
echo "$(printf %s "$*" | tr '\\n' ' ')" >> {calls}
number=$(wc -l < {calls})
if {deadly}; then kill -9 $PPID; {then}; fi
exec {shutil.which("git")} "$@"
"""
    )
    program.chmod(0o755)
    return programs


def check_nothing_remains(runs: WorkspaceRuns, hint: str) -> None:
    """Once everything is removed there is no worktree, no branch of an attempt, and no lock."""
    ports = WorkspacePorts(store=engine_of(runs.hf), state=runs.state, is_stopped=lambda *_: True)
    remove_unused_worktrees(ports, ports.find_git(), [])
    told = run(runs.path, "fsck", "--strict", "--no-dangling")
    assert told == "", f"{hint}: {told}"
    assert run(runs.path, "worktree", "list").count("\n") == 0, hint
    references = run(runs.path, "for-each-ref", "--format=%(refname:short)").split("\n")
    visible = [each for each in references if not each.startswith("holdfast/")]
    assert visible == ["main"], f"{hint}: {references}"
    git = runs.path / ".git"
    left = [path for path in git.rglob("*") if path.suffix in {".lock", ".copy"}]
    assert left == [], hint
    diagnosis = runs.hf.doctor()
    assert diagnosis.ok, f"{hint}: {diagnosis}"
