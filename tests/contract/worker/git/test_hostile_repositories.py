"""Hostile repositories: whatever program one names, no operation on it runs the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import CheckoutInTheWay
from holdfast.worker.git.branch_moves import BranchMove, move_branch
from holdfast.worker.git.commits import AttemptWorktree, CommitMessage, commit_left_work
from holdfast.worker.git.diffs import read_diff
from holdfast.worker.git.merges import MergeConflict, Merged, WantedMerge, merge_commits
from holdfast.worker.git.repository import list_checkouts, resolve_commit
from holdfast.worker.git.worktrees import add_worktree, hand_over_worktree, remove_worktree
from tests.contract.worker.git.repositories import World, head, plant, run, save, write

FILES: dict[str, str | bytes] = {
    "a.txt": "one\n",
    "b.md": "two\n",
    "c.rst": "three\n",
    "d.odd": "four\n",
    "e.bin": b"\0\1",
}


@pytest.fixture
def canary(world: World) -> Path:
    return world.folder / "canary"


@pytest.fixture
def hostile(world: World, canary: Path) -> Path:
    path = world.repository(commit=False)
    write(path, FILES)
    save(path, "Begin")
    plant(path, canary)
    run(path, "-c", "core.fsmonitor=false", "add", ".gitattributes", code=None)
    canary.unlink(missing_ok=True)
    return path


def test_the_programs_of_the_repository_are_run_by_a_bare_git(hostile: Path, canary: Path) -> None:
    run(hostile, "status", code=None)
    run(hostile, "worktree", "add", "../bare", "HEAD", code=None)
    run(hostile.parent / "bare", "add", "-A", code=None)
    shouted = canary.read_text()
    assert "hook post-checkout" in shouted
    assert "shout.sh" in shouted


def test_no_operation_runs_a_program_of_the_repository(
    world: World, hostile: Path, canary: Path
) -> None:
    repository = world.open(hostile)
    start = resolve_commit(repository, "main")
    path = world.folder / "worktrees/w1"
    add_worktree(repository, path, start, branch="attempts/t_1.1")
    write(path, {name: f"changed {name}\n" for name in FILES} | {"new.txt": "new\n"})
    attempt = AttemptWorktree(path=path, start=start, branch="attempts/t_1.1")
    left = commit_left_work(repository, attempt, CommitMessage(subject="Work"))
    hand_over_worktree(repository, path, start)
    write(path, {"a.txt": "other\n", "f.txt": "f\n"})
    other = commit_left_work(
        repository, AttemptWorktree(path=path, start=start), CommitMessage(subject="Other")
    )
    read_diff(repository, start, left.commit)
    wanted = WantedMerge(into=left.commit, head=other.commit, message="Merge\n")
    assert isinstance(merge_commits(repository, wanted), MergeConflict)
    for strategy in ("merge", "squash", "rebase"):
        wanted = WantedMerge(into=start, head=other.commit, message="Merge\n", strategy=strategy)
        assert isinstance(merge_commits(repository, wanted), Merged)
    move = BranchMove(branch="main", old=start, new=left.commit)
    with pytest.raises(CheckoutInTheWay, match=r"a filter of git.*: a\.txt, b\.md"):
        move_branch(repository, move)
    assert not canary.exists(), canary.read_text()
    make_clean(hostile, canary)
    move_branch(repository, move)
    assert (hostile / "a.txt").read_text() == "changed a.txt\n"
    assert [each.branch for each in list_checkouts(repository)] == ["main", None]
    remove_worktree(repository, path)
    assert not canary.exists(), canary.read_text()


def make_clean(path: Path, canary: Path) -> None:
    """Take back what `plant` has changed in the checkout."""
    (path / ".gitattributes").unlink()
    (path / ".git/info/attributes").unlink()
    (path / "shout.sh").rename(path.parent / "shout.sh")
    run(path, "-c", "core.fsmonitor=false", "read-tree", "main", code=None)
    canary.unlink(missing_ok=True)


def test_no_operation_runs_a_program_of_the_users_own_settings_unless_filters_are_asked_for(
    world: World, canary: Path
) -> None:
    path = world.repository()
    write(path, {".gitattributes": "*.big filter=large\n", "x.big": "small\n"})
    start = save(path, "Add")
    program = world.folder / "large.sh"
    program.write_text(f"#!/bin/sh\necho large >> {canary}\ntr a-z A-Z\n")
    program.chmod(0o755)
    world.settings.write_text(
        world.settings.read_text()
        + f'[filter "large"]\n\tclean = {program}\n\tsmudge = {program}\n'
        + f"[core]\n\tpager = {program}\n"
    )
    add_worktree(world.open(path), world.folder / "plain", start)
    assert not canary.exists()
    assert (world.folder / "plain/x.big").read_text() == "small\n"
    add_worktree(world.open(path, filters=True), world.folder / "filtered", start)
    assert canary.exists()
    assert (world.folder / "filtered/x.big").read_text() == "SMALL\n"


def test_a_filter_of_the_repository_does_not_run_where_filters_are_asked_for(
    world: World, hostile: Path, canary: Path
) -> None:
    add_worktree(world.open(hostile, filters=True), world.folder / "filtered", head(hostile))
    assert not canary.exists()


def test_variables_of_git_that_holdfast_was_started_with_have_no_say(
    world: World, monkeypatch: pytest.MonkeyPatch, canary: Path
) -> None:
    path, other = world.repository(), world.repository("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canary};")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor'='touch {canary}'")
    assert world.open(path).common == path / ".git"
    assert not canary.exists()
