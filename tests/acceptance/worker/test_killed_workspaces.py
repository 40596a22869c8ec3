"""Workers killed with -9 at a git command: the run goes on, and each change is there once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.worker.workspaces.attempt_workspace import WorkspacePorts
from holdfast.worker.workspaces.upkeep import follow_lines, remove_unused_worktrees
from tests.contract.worker.git.repositories import World, head, run, show
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.programs import running
from tests.race.racers import eventually

# How many moments are tried; the commands of a whole run are about seventy.
MOMENTS = int(os.environ.get("HOLDFAST_TEST_KILLS", "7"))
COMMANDS = 70
WORKER = """
import sys
from holdfast import Holdfast
with Holdfast(sys.argv[1], lease=1.0) as hf:
    with hf.worker(agents=["*"], concurrency=1, name="first"):
        print("there", flush=True)
        sys.stdin.readline()
"""
STEPS = """
  - {id: one, run: [sh, -c, 'echo "$HOLDFAST_ATTEMPT" >> a.txt; echo new > b.txt']}
  - {id: two, run: [sh, -c, 'echo two > c.txt']}
  - {id: merge, merge: main}
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user/.config"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return World(tmp_path)


@contextmanager
def deadly_git(folder: Path, number: int) -> Iterator[Path]:
    """A git first in the search path that kills its worker before its command of a number."""
    real, counter = shutil.which("git"), folder / "commands"
    counter.write_text("")
    program = folder / "bin/git"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho >> {counter}\n"
        f'[ "$(wc -l < {counter})" = {number} ] && {{ kill -9 $PPID; exit 1; }}\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{before}"
    try:
        yield counter
    finally:
        os.environ["PATH"] = before


@pytest.mark.parametrize("number", [1 + COMMANDS * each // MOMENTS for each in range(MOMENTS)])
def test_a_run_whose_worker_is_killed_at_a_git_command_ends_with_each_change_once(
    sqlite_store_url: str, world: World, tmp_path: Path, number: int
) -> None:
    with Holdfast(sqlite_store_url, lease=1.0) as hf:
        runs = WorkspaceRuns(hf, world, tmp_path / "home")
        started = runs.start(STEPS, HEADING)
        with deadly_git(tmp_path, number), running(WORKER, sqlite_store_url, tmp_path) as process:
            assert eventually(
                lambda: process.poll() is not None or hf.runs.get(started.id).terminal
            ), runs.tell(started)
        with hf.worker(agents=["*"], concurrency=1, name="second"):
            ended = runs.wait(started)
        assert ended.status == "completed", runs.tell(ended)
        assert head(runs.path, "main") == runs.task(ended, "merge").output["commit"]
        assert show(runs.path, "main", "a.txt").split("\n")[1:] in (["1"], ["2"])
        assert runs.subjects("main")[1:] == ["two", "one", "Begin"]
        assert run(runs.path, "status", "--porcelain") == ""
        assert run(runs.path, "log", "--merges", "--format=%s", "main").count("\n") == 0
        assert hf.doctor().ok
        assert_nothing_is_left(runs)


def assert_nothing_is_left(runs: WorkspaceRuns) -> None:
    """No worktree, no branch of an attempt and no lock, once everything is removed."""
    ports = WorkspacePorts(store=engine_of(runs.hf), state=runs.state, is_stopped=lambda *_: True)
    git = ports.find_git()
    follow_lines(git, [])
    remove_unused_worktrees(ports, git, [])
    run(runs.path, "fsck", "--strict")
    assert run(runs.path, "worktree", "list").count("\n") == 0
    references = run(runs.path, "for-each-ref", "--format=%(refname)").split("\n")
    assert [each for each in references if "holdfast-attempts" in each or "runs/" in each] == []
    locks = [*(runs.path / ".git").rglob("*.lock"), *(runs.path / ".git").rglob("holdfast-*.copy")]
    assert locks == []
