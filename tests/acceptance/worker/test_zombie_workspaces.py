"""Zombies in workspaces: an attempt that wakes after its successor began changes nothing of it."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.worker.steps.process_keeper import find_descendants, list_processes
from tests.contract.worker.git.repositories import World, head, run, show
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.programs import running
from tests.race.racers import eventually

WORKER = """
import sys, time
from holdfast import Holdfast
with Holdfast(sys.argv[1], lease=1.0) as hf:
    with hf.worker(agents=["*"], concurrency=1, name="first"):
        print("there", flush=True)
        sys.stdin.readline()
"""
# The first attempt goes on for as long as it can, and tries to have its way.
SCRIPT = """
cd "$HOLDFAST_WORKSPACE"
if [ "$HOLDFAST_ATTEMPT" = 1 ]; then
  echo first > a.txt; touch FOLDER/ready
  until [ -e FOLDER/go ]; do sleep 0.02; done
  echo late > a.txt; echo late > late.txt; git add -A; git commit -q -m late
  git push -q origin HEAD:refs/heads/main HEAD:refs/heads/"$BRANCH"
  echo '{"late": true}'
else
  touch FOLDER/second; until [ -e FOLDER/on ]; do sleep 0.02; done
  cat a.txt; echo second > a.txt
fi
"""
STEPS = """
  - {id: one, run: [sh, FOLDER/script.sh], env: {BRANCH: "{{ run.branch }}"}}
  - {id: merge, merge: main}
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user/.config"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return World(tmp_path)


@contextmanager
def stopped_worker(url: str, folder: Path) -> Iterator[list[int]]:
    """A worker of its own process with all it started, stopped in the middle of attempt 1."""
    with running(WORKER, url, folder) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert eventually((folder / "ready").exists)
        # The worker first, and by Ctrl-Z: it must not keep a SQLite file locked.
        stopped = [process.pid]
        send(stopped, signal.SIGTSTP)
        assert eventually(lambda: state_of(process.pid) == "T")
        stopped += find_descendants(list_processes(), {process.pid})
        send(stopped, signal.SIGSTOP)
        yield stopped
        send(stopped, signal.SIGKILL)


def state_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def send(processes: list[int], number: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


@pytest.mark.parametrize("moment", ["after the merge", "before the successor has moved anything"])
def test_a_zombie_moves_nothing_that_anybody_reads(
    store_url: str, world: World, tmp_path: Path, moment: str
) -> None:
    (tmp_path / "script.sh").write_text(SCRIPT.replace("FOLDER", str(tmp_path)))
    with Holdfast(store_url, lease=1.0) as hf:
        runs = WorkspaceRuns(hf, world, tmp_path / "home")
        started = runs.start(STEPS.replace("FOLDER", str(tmp_path)), HEADING)
        with (
            stopped_worker(store_url, tmp_path) as stopped,
            hf.worker(agents=["*"], concurrency=1, name="second"),
        ):
            assert eventually((tmp_path / "second").exists), runs.tell(started)
            if moment == "after the merge":
                (tmp_path / "on").touch()
                assert eventually(lambda: hf.runs.get(started.id).terminal)
            (tmp_path / "go").touch()
            send(stopped[::-1], signal.SIGCONT)
            # The zombie gives its worktree back when its command has ended.
            assert eventually(lambda: is_free(runs, f"{started.id}.1"))
            (tmp_path / "on").touch()
            ended = runs.wait(started)
        assert ended.status == "completed", runs.tell(ended)
        task = runs.task(ended, "one")
        assert task.attempt == 2
        assert runs.log(task, 2) == "one\n"
        assert show(runs.path, "main", "a.txt") == "second"
        assert show(runs.path, runs.branch(ended), "a.txt") == "second"
        assert runs.subjects("main")[1:] == ["one", "Begin"]
        assert "late.txt" not in run(runs.path, "ls-tree", "-r", "--name-only", "main")
        assert head(runs.path, "main") == runs.task(ended, "merge").output["commit"]
        outcomes = [each.outcome for each in hf.tasks.attempts(task.id)]
        assert outcomes == ["lost", "completed"]
        assert hf.doctor().ok
        run(runs.path, "fsck", "--strict")


def test_a_zombie_with_a_clone_of_its_own_pushes_over_nothing(
    sqlite_store_url: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "script.sh").write_text(SCRIPT.replace("FOLDER", str(tmp_path)))
    with Holdfast(sqlite_store_url, lease=1.0) as hf:
        runs = WorkspaceRuns(hf, world, tmp_path / "home")
        run(tmp_path, "clone", "--quiet", "--bare", str(runs.path), "remote.git")
        remote = tmp_path / "remote.git"
        steps = STEPS.replace("FOLDER", str(tmp_path))
        started = runs.start(steps, HEADING, repo=f"file://{remote}")
        with stopped_worker(sqlite_store_url, tmp_path) as stopped:
            # Another machine: other folders, and so another clone.
            monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "another"))
            with hf.worker(agents=["*"], concurrency=1, name="second"):
                assert eventually((tmp_path / "second").exists), runs.tell(started)
                (tmp_path / "go").touch()
                send(stopped[::-1], signal.SIGCONT)
                assert eventually(lambda: is_free(runs, f"{started.id}.1"))
                (tmp_path / "on").touch()
                ended = runs.wait(started, followed=False)
        assert ended.status == "completed", runs.tell(ended)
        assert show(remote, "main", "a.txt") == "second"
        assert head(remote, "main") == runs.task(ended, "merge").output["commit"]
        branch = run(remote, "branch", "--format=%(refname:short)", "--list", "holdfast/*")
        assert eventually(lambda: head(remote, branch) == runs.task(ended, "one").output["commit"])
        assert "late.txt" not in run(remote, "ls-tree", "-r", "--name-only", branch)


def is_free(runs: WorkspaceRuns, name: str) -> bool:
    with (runs.state.root / f"workspaces/{name}.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
