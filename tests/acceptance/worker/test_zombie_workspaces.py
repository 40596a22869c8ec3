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
from holdfast.model.run import Run
from holdfast.worker.steps.process_keeper import find_descendants, list_processes
from tests.contract.worker.git.repositories import World, head, run, show
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.programs import running
from tests.race.racers import eventually

WORKER = """
import os, signal, sys
from holdfast import Holdfast, NewTask
from holdfast.engine.engine import engine_of

def stop_in_the_writer(hf):
    # Right after a commit: one that is stopped within holds up every other process of the store.
    stops = [lambda: os.kill(os.getpid(), signal.SIGSTOP)]
    engine_of(hf).on_end(lambda _: stops.pop()() if stops else None)
    hf.tasks.cancel(hf.tasks.create(NewTask(title="last", enqueue=False)).id)

with Holdfast(sys.argv[1], lease=1.0) as hf:
    with hf.worker(agents=["*"], concurrency=1, name="first"):
        print("there", flush=True)
        sys.stdin.readline()
        stop_in_the_writer(hf)
        sys.stdin.readline()
"""
# The first attempt goes on for as long as it can, and tries to have its way.
SCRIPT = """
cd "$HOLDFAST_WORKSPACE"
if [ "$HOLDFAST_ATTEMPT" = 1 ]; then
  echo first > a.txt; touch FOLDER/ready
  until [ -e FOLDER/go ]; do sleep 0.02; done
  echo late > a.txt; echo late > late.txt; git add -A; git commit -q -m late
  PUSH
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
        # The worker first.
        stopped = [process.pid]
        assert process.stdin is not None
        process.stdin.write("stop\n")
        process.stdin.flush()
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


AFTER, BEFORE = "after the merge", "before the successor has moved anything"


@pytest.mark.parametrize("moment", [AFTER, BEFORE])
def test_a_zombie_moves_nothing_that_anybody_reads(
    store_url: str, world: World, tmp_path: Path, moment: str
) -> None:
    with Holdfast(store_url, lease=1.0) as hf:
        runs = WorkspaceRuns(hf, world, tmp_path / "home")
        write_script(tmp_path, runs.path, moment)
        started = runs.start(STEPS.replace("FOLDER", str(tmp_path)), HEADING)
        with stopped_worker(store_url, tmp_path) as stopped:
            ended = wake_zombie(runs, started, stopped, moment)
        check_successor_alone(runs, ended, runs.path)


@pytest.mark.parametrize("moment", [AFTER, BEFORE])
def test_a_zombie_with_a_clone_of_its_own_moves_nothing_at_their_url(
    sqlite_store_url: str,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    with Holdfast(sqlite_store_url, lease=1.0) as hf:
        runs = WorkspaceRuns(hf, world, tmp_path / "home")
        run(tmp_path, "clone", "--quiet", "--bare", str(runs.path), "remote.git")
        remote = tmp_path / "remote.git"
        write_script(tmp_path, remote, moment)
        steps = STEPS.replace("FOLDER", str(tmp_path))
        started = runs.start(steps, HEADING, repo=f"file://{remote}")
        monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "elsewhere"))
        with stopped_worker(sqlite_store_url, tmp_path) as stopped:
            monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
            ended = wake_zombie(runs, started, stopped, moment, home=tmp_path / "elsewhere")
        assert len([*tmp_path.glob("*/git/clones/*.git")]) == 2
        check_successor_alone(runs, ended, remote)


def write_script(folder: Path, repository: Path, moment: str) -> None:
    """The script of both attempts; once its successor has pushed, the first one pushes too."""
    names = 'HEAD:refs/heads/main HEAD:refs/heads/"$BRANCH"'
    push = f"git push -q {repository} {names}" if moment == AFTER else ""
    script = SCRIPT.replace("FOLDER", str(folder)).replace("PUSH", push)
    (folder / "script.sh").write_text(script)


def wake_zombie(
    runs: WorkspaceRuns, started: Run, stopped: list[int], moment: str, home: Path | None = None
) -> Run:
    """Wake the stopped attempt once its successor is at work, or done; the run at its end."""
    folder, hf = runs.world.folder, runs.hf
    with hf.worker(agents=["*"], concurrency=1, name="second"):
        assert eventually((folder / "second").exists), runs.tell(started)
        if moment == AFTER:
            (folder / "on").touch()
            assert eventually(lambda: hf.runs.get(started.id).terminal)
        (folder / "go").touch()
        send(stopped[::-1], signal.SIGCONT)
        # The zombie gives its worktree back when its command has ended.
        assert eventually(lambda: is_free(home or runs.state.root, f"{started.id}.1"))
        (folder / "on").touch()
        return runs.wait(started, followed=home is None)


def check_successor_alone(runs: WorkspaceRuns, ended: Run, repository: Path) -> None:
    """Branch and target hold what attempt 2 did, and nothing of attempt 1."""
    assert ended.status == "completed", runs.tell(ended)
    task = runs.task(ended, "one")
    assert task.attempt == 2
    assert runs.log(task, 2) == "one\n"
    assert show(repository, "main", "a.txt") == "second"
    (branch,) = run(
        repository, "branch", "--format=%(refname:short)", "--list", "holdfast/*"
    ).split()
    assert show(repository, branch, "a.txt") == "second"
    assert run(repository, "log", "--topo-order", "--format=%s", "main").split("\n")[1:] == [
        "one",
        "Begin",
    ]
    assert "late.txt" not in run(repository, "ls-tree", "-r", "--name-only", "main")
    assert head(repository, "main") == runs.task(ended, "merge").output["commit"]
    outcomes = [each.outcome for each in runs.hf.tasks.attempts(task.id)]
    assert outcomes == ["lost", "completed"]
    diagnosis = runs.hf.doctor()
    assert diagnosis.ok, str(diagnosis)
    run(repository, "fsck", "--strict")


def is_free(home: Path, name: str) -> bool:
    with (home / f"workspaces/{name}.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
