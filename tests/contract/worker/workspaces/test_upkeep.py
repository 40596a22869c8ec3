"""The upkeep of workspaces: branches follow, and what nobody needs any more is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.model.workflow.line import HostLine
from holdfast.worker.remote.client import TokenRefused
from holdfast.worker.workspaces.attempt_workspace import WorkspacePorts
from holdfast.worker.workspaces.upkeep import (
    clean_workspaces,
    find_unused_worktrees,
    tend_workspaces,
)
from holdfast.worker.workspaces.worktree_pool import WorktreePool
from tests.contract.worker.git.repositories import World, head, run
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns, workspace_runs
from tests.race.racers import eventually

EDIT = "  - {id: one, run: [sh, -c, 'echo two > a.txt']}\n"
SHORT = HEADING.replace("repo }}'}", "repo }}', keep: 1ms}")


def ports_of(runs: WorkspaceRuns) -> WorkspacePorts:
    return WorkspacePorts(store=engine_of(runs.hf), state=runs.state, is_stopped=lambda *_: True)


def left_folders(runs: WorkspaceRuns) -> list[str]:
    found = (runs.state.root / "workspaces").glob("*")
    return sorted(each.name for each in found if each.is_dir())


def test_the_worktree_of_a_run_is_kept_and_then_removed_with_its_references(
    runs: WorkspaceRuns,
) -> None:
    kept = runs.end(EDIT)
    gone = runs.end(EDIT, SHORT)
    running = runs.start(EDIT + "  - {id: wait, approval: Go on?}\n", SHORT)
    assert eventually(lambda: runs.task(running, "one").status == "done")
    assert eventually(runs.no_worktree_is_lent)
    runs.world.folder.joinpath("home/workspaces", f"{gone.id}.1/folder").chmod(0o500)
    time.sleep(0.01)
    removed = tend_workspaces(ports_of(runs))
    assert [each.run for each in removed] == [gone.id]
    assert removed[0].bytes > 0
    folders = {f"{each.id}.1{end}" for each in (kept, running) for end in ("", ".scratch")}
    assert set(left_folders(runs)) == folders
    assert run(runs.path, "for-each-ref", f"refs/holdfast/runs/{gone.id}") == ""
    assert run(runs.path, "for-each-ref", f"refs/holdfast/runs/{kept.id}") != ""
    assert head(runs.path, runs.branch(gone)) == runs.task(gone, "one").output["commit"]
    assert len(run(runs.path, "worktree", "list").split("\n")) == 3
    assert tend_workspaces(ports_of(runs)) == []
    unused = find_unused_worktrees(ports_of(runs), [])
    assert {each.run for each in unused} == {kept.id, running.id}
    runs.hf.approve(runs.task(running, "wait").id)
    runs.wait(running)


def test_a_worktree_whose_repository_is_gone_is_removed(runs: WorkspaceRuns) -> None:
    gone = runs.end(EDIT, SHORT)
    runs.path.rename(runs.path.with_name("elsewhere"))
    time.sleep(0.01)
    assert [each.run for each in tend_workspaces(ports_of(runs))] == [gone.id]
    assert left_folders(runs) == []


def test_the_worktree_at_a_url_goes_when_nobody_has_used_it_for_long(runs: WorkspaceRuns) -> None:
    run(runs.world.folder, "clone", "--quiet", "--bare", str(runs.path), "remote.git")
    ended = runs.end(EDIT, repo=f"file://{runs.world.folder}/remote.git")
    assert tend_workspaces(ports_of(runs)) == []
    record = runs.state.root / "workspaces" / f"{ended.id}.1.json"
    os.utime(record, (1, 1))
    assert [each.run for each in tend_workspaces(ports_of(runs))] == [ended.id]


def test_a_worker_that_starts_has_the_branches_follow_that_a_killed_one_did_not_move(
    sqlite_store_url: str, world: World, tmp_path: Path
) -> None:
    with workspace_runs(sqlite_store_url, world, tmp_path / "home") as runs:
        ended = runs.end(EDIT)
        branch, commit = runs.branch(ended), runs.task(ended, "one").output["commit"]
        run(runs.path, "branch", "-D", branch)
    with Holdfast(sqlite_store_url) as hf, hf.worker(agents=["*"]):
        assert eventually(lambda: run(runs.path, "branch", "--list", branch) != "")
        assert head(runs.path, branch) == commit


def test_worktrees_of_another_store_in_the_same_folder_are_left_alone(
    runs: WorkspaceRuns, tmp_path: Path
) -> None:
    ended = runs.end(EDIT, SHORT)
    time.sleep(0.01)
    with Holdfast(f"sqlite:///{tmp_path}/another.db") as hf:
        other = WorkspacePorts(store=engine_of(hf), state=runs.state, is_stopped=lambda *_: True)
        assert tend_workspaces(other) == []
    assert f"{ended.id}.1" in left_folders(runs)


@pytest.mark.parametrize("how", ["locked", "running"])
def test_a_worktree_in_which_something_runs_is_not_removed(runs: WorkspaceRuns, how: str) -> None:
    ended = runs.end(EDIT, SHORT)
    time.sleep(0.01)
    ports = ports_of(runs)
    if how == "running":
        record = runs.state.root / "workspaces" / f"{ended.id}.1.json"
        record.write_text(record.read_text().replace('"task": ""', '"task": "t_1"'))
        ports = WorkspacePorts(store=ports.store, state=ports.state, is_stopped=lambda *_: False)
        assert tend_workspaces(ports) == []
    else:
        with WorktreePool(ports.folder, lambda *_: True).lend(ended.id):
            assert tend_workspaces(ports) == []
    assert f"{ended.id}.1" in left_folders(runs)


def test_clean_removes_worktrees_kept_past_their_time_and_branches_that_were_merged(
    runs: WorkspaceRuns,
) -> None:
    noted = runs.state.root / "workspaces/.tended"
    noted.parent.mkdir(parents=True)
    # Else the second run would have the first one's worktree removed.
    noted.touch()
    gone = runs.end(EDIT + "  - {id: merge, merge: main}\n", SHORT)
    unmerged = runs.end(EDIT.replace("two", "three"), SHORT)
    time.sleep(0.01)
    ports = ports_of(runs)
    would = clean_workspaces(ports, dry_run=True)
    branches = {runs.branch(gone), runs.branch(unmerged)}
    assert len(branches) == 2
    assert clean_workspaces(ports) == would
    assert {each.run for each in would} == {gone.id, unmerged.id}
    assert run(runs.path, "branch", "--list", "holdfast/*").strip() == runs.branch(unmerged)
    assert clean_workspaces(ports) == []


def test_the_worktree_of_a_running_run_is_kept_when_the_machine_takes_another_name(
    runs: WorkspaceRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = runs.start(EDIT + "  - {id: wait, approval: Go on?}\n", SHORT)
    assert eventually(lambda: runs.task(running, "one").status == "done")
    assert eventually(runs.no_worktree_is_lent)
    kept = run(runs.path, "for-each-ref", f"refs/holdfast/runs/{running.id}")
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere.lan")
    assert tend_workspaces(ports_of(runs)) == []
    assert clean_workspaces(ports_of(runs)) == []
    assert run(runs.path, "for-each-ref", f"refs/holdfast/runs/{running.id}") == kept != ""
    monkeypatch.undo()
    runs.hf.approve(runs.task(running, "wait").id)
    runs.wait(running)


def test_a_worker_that_may_not_know_what_runs_removes_nothing(
    runs: WorkspaceRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = runs.end(EDIT, SHORT)
    time.sleep(0.01)
    ports = ports_of(runs)

    def refuse(host: str) -> list[HostLine]:
        raise TokenRefused("http://server", f"not all of {host}")

    with monkeypatch.context() as patched:
        patched.setattr(type(ports.store.work), "lines_of_host", staticmethod(refuse))
        assert tend_workspaces(ports) == []
    assert [each.run for each in tend_workspaces(ports)] == [ended.id]


def test_a_branch_that_a_workflow_names_is_left_to_its_people(runs: WorkspaceRuns) -> None:
    run(runs.path, "branch", "develop")
    heading = SHORT.replace("keep: 1ms", "keep: 1ms, branch: develop")
    ended = runs.end(EDIT + "  - {id: merge, merge: main}\n", heading)
    assert ended.status == "completed", runs.tell(ended)
    time.sleep(0.01)
    assert [each.run for each in clean_workspaces(ports_of(runs))] == [ended.id]
    assert head(runs.path, "develop") == runs.task(ended, "one").output["commit"]
