"""Runs in repositories that are empty, dirty, bare, full, hostile or moved: each ends in words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.model.run import Run
from tests.contract.worker.git.repositories import head, plant, run, show, tree, write
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.race.racers import eventually

EDIT = "  - {id: one, run: [sh, -c, 'echo two > a.txt; echo new > b.txt']}\n"
MERGE = "  - {id: merge, merge: main}\n"
WAIT = "  - {id: wait, approval: Go on?}\n"


def why(runs: WorkspaceRuns, of: Run) -> str:
    return str(runs.hf.why(of.id))


def test_an_empty_change_is_done_and_merges_nothing(runs: WorkspaceRuns) -> None:
    ended = runs.end("  - {id: one, run: ['true']}\n" + MERGE)
    assert ended.status == "completed", runs.tell(ended)
    assert runs.task(ended, "one").output == {
        "text": "",
        "commit": runs.base,
        "no_changes": True,
    }
    assert runs.task(ended, "merge").output["no_changes"] is True
    assert head(runs.path, "main") == runs.base
    assert "completed" in why(runs, ended)


def test_a_merge_into_a_dirty_checkout_is_refused_and_why_names_the_file(
    runs: WorkspaceRuns,
) -> None:
    write(runs.path, {"a.txt": "mine\n"})
    ended = runs.end(EDIT + MERGE)
    assert ended.status == "failed"
    assert f"main is checked out in {runs.path}, with changes in: a.txt" in why(runs, ended)
    assert (runs.path / "a.txt").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["bare.git", "shallow"])
def test_a_run_is_merged_in_a_bare_and_in_a_shallow_repository(
    runs: WorkspaceRuns, name: str
) -> None:
    run(runs.path, "commit", "--quiet", "--allow-empty", "-m", "Go on")
    run(runs.world.folder, "clone", "--quiet", "--bare", str(runs.path), "bare.git")
    run(runs.world.folder, "clone", "--quiet", "--depth=1", f"file://{runs.path}", "shallow")
    path = runs.world.folder / name
    ended = runs.end(EDIT + MERGE, repo=str(path))
    assert ended.status == "completed", runs.tell(ended)
    assert show(path, "main", "b.txt") == "new"
    run(path, "fsck", "--strict")


def test_an_empty_repository_fails_the_run_and_why_tells_what_to_type(runs: WorkspaceRuns) -> None:
    empty = runs.world.repository("empty", commit=False)
    ended = runs.end(EDIT, repo=str(empty))
    assert ended.status == "failed"
    assert "has no commit yet; make a first one by: git commit --allow-empty" in why(runs, ended)


@pytest.mark.parametrize("name", ["--upload-pack=x", "a..b", "$(touch owned)", "x.lock", "HEAD"])
def test_a_branch_with_a_hostile_name_is_refused_in_words(runs: WorkspaceRuns, name: str) -> None:
    heading = HEADING.replace("{repo: string}", "{repo: string, into: string}")
    ended = runs.end(EDIT + "  - {id: merge, merge: '{{ input.into }}'}\n", heading, into=name)
    assert ended.status == "failed"
    told = why(runs, ended)
    assert "is no name" in told or "there is no branch" in told
    assert [*runs.world.folder.rglob("owned")] == []
    assert head(runs.path, "main") == runs.base


def test_into_that_moves_before_each_merge_is_merged_again_on_top(runs: WorkspaceRuns) -> None:
    started = runs.start(EDIT + WAIT + MERGE)
    assert eventually(lambda: runs.task(started, "wait").status != "idle")
    write(runs.path, {"theirs.txt": "theirs\n"})
    run(runs.path, "add", "--all")
    run(runs.path, "commit", "--quiet", "-m", "Theirs")
    assert eventually(lambda: runs.task(started, "one").status == "done")
    runs.hf.approve(runs.task(started, "wait").id)
    ended = runs.wait(started)
    assert ended.status == "completed", runs.tell(ended)
    assert tree(runs.path, "main") == ["a.txt", "b.txt", "folder/b.txt", "theirs.txt"]
    assert run(runs.path, "status", "--porcelain") == ""


@pytest.mark.parametrize("branch", ["main", "elsewhere"])
def test_a_merge_runs_no_hook_and_no_filter_of_the_repository(
    runs: WorkspaceRuns, branch: str
) -> None:
    canary = runs.world.folder / "canary"
    started = runs.start(EDIT + WAIT + MERGE)
    assert eventually(lambda: runs.task(started, "one").status == "done")
    assert eventually(lambda: runs.branch_has_followed(started))
    run(runs.path, "checkout", "--quiet", "-B", branch)
    plant(runs.path, canary)
    for name in ("shout.sh", ".gitattributes"):
        (runs.path / name).rename(runs.world.folder / name)
    canary.unlink(missing_ok=True)
    runs.hf.approve(runs.task(started, "wait").id)
    ended = runs.wait(started)
    assert not canary.exists(), canary.read_text()
    if branch == "main":
        # The user's own git would have filtered these files.
        assert ended.status == "failed"
        assert "a filter of git, which Holdfast does not run" in why(runs, ended)
        assert head(runs.path, "main") == runs.base
    else:
        assert ended.status == "completed", runs.tell(ended)
        assert head(runs.path, "main") == runs.task(ended, "merge").output["commit"]
    assert not canary.exists(), canary.read_text()


LARGE = "  - {id: one, run: [sh, -c, 'head -c 100000 /dev/urandom > large.bin']}\n"


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file; while it is there, git can write no file longer than 4 KiB, as on a full disk."""
    full, programs = tmp_path / "full", tmp_path / "programs"
    programs.mkdir()
    program = programs / "git"
    program.write_text(
        f"#!/bin/sh\n[ -e {full} ] && {{ trap '' XFSZ; ulimit -f 8; }}\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return full


def test_a_full_disk_fails_the_attempt_in_words_and_the_work_is_done_where_there_is_room(
    full_disk: Path, runs: WorkspaceRuns
) -> None:
    steps = LARGE.replace("run:", "max_attempts: 1, run:") + MERGE
    full_disk.touch()
    ended = runs.end(steps)
    assert ended.status == "failed"
    told = why(runs, ended)
    assert "its work could not be committed" in told
    assert "File too large" in told
    assert head(runs.path, "main") == runs.base
    full_disk.unlink()
    runs.hf.runs.retry(ended.id)
    ended = runs.wait(ended)
    assert ended.status == "completed", runs.tell(ended)
    assert "large.bin" in tree(runs.path, "main")
    assert run(runs.path, "fsck", "--strict", "--no-dangling") == ""


def test_a_disk_that_is_full_when_a_checkout_is_merged_into_leaves_it_whole(
    full_disk: Path, runs: WorkspaceRuns
) -> None:
    started = runs.start(
        LARGE + WAIT + MERGE.replace("merge: main", "max_attempts: 1, merge: main")
    )
    assert eventually(lambda: runs.task(started, "one").status == "done")
    assert eventually(lambda: runs.branch_has_followed(started))
    full_disk.touch()
    runs.hf.approve(runs.task(started, "wait").id)
    ended = runs.wait(started)
    assert ended.status == "failed"
    told = why(runs, ended)
    assert "large.bin" in told
    assert head(runs.path, "main") == runs.base
    assert not (runs.path / "large.bin").exists()
    assert run(runs.path, "status", "--porcelain") == ""
    full_disk.unlink()
    runs.hf.runs.retry(ended.id)
    ended = runs.wait(ended)
    assert ended.status == "completed", runs.tell(ended)
    assert (runs.path / "large.bin").stat().st_size == 100_000
    assert run(runs.path, "status", "--porcelain") == ""
    assert run(runs.path, "fsck", "--strict", "--no-dangling") == ""
