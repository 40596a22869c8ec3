"""Worktrees: made, handed over clean, and removed in whatever state they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.errors import RepositoryUnusable, WorkspaceUnusable
from holdfast.worker.git.worktrees import (
    add_worktree,
    hand_over_worktree,
    list_worktrees,
    remove_worktree,
)
from tests.contract.worker.git.repositories import World, commit_files, head, run, save, write


def test_a_worktree_is_at_its_commit_with_its_own_branch(world: World) -> None:
    path = world.repository()
    made = world.folder / "work/t_1.1"
    add_worktree(world.open(path), made, head(path), branch="holdfast-attempts/t_1.1")
    assert run(made, "status", "--porcelain", "--branch") == "## holdfast-attempts/t_1.1"
    assert head(made) == head(path)
    assert (made / "folder/b.txt").read_text() == "b\n"
    assert run(made, "log", "--format=%s") == "Begin"


def test_a_worktree_of_a_bare_and_of_a_shallow_repository_is_whole(world: World) -> None:
    path = world.repository()
    run(world.folder, "clone", "--quiet", "--bare", str(path), "bare.git")
    run(world.folder, "clone", "--quiet", "--depth=1", f"file://{path}", "shallow")
    for name in ("bare.git", "shallow"):
        made = world.folder / f"of-{name}"
        add_worktree(world.open(world.folder / name), made, head(path))
        assert run(made, "status", "--porcelain") == ""


def test_a_folder_that_is_there_is_not_taken_for_a_worktree(world: World) -> None:
    path = world.repository()
    (world.folder / "taken").mkdir()
    with pytest.raises(RepositoryUnusable, match="is there already"):
        add_worktree(world.open(path), world.folder / "taken", head(path))


def test_a_worktree_is_handed_over_without_what_was_left_in_it(world: World) -> None:
    path = world.repository()
    write(path, {".gitignore": "cache/\n"})
    start = save(path, "Ignore")
    other = commit_files(path, start, {"a.txt": "two\n", "folder/b.txt": None, "new/c.txt": "c\n"})
    made = world.folder / "w1"
    add_worktree(world.open(path), made, start, branch="one")
    write(made, {"a.txt": "changed\n", "left.txt": "left\n", "deep/left.txt": "left\n"})
    write(made, {"cache/kept.txt": "kept\n", "staged.txt": "staged\n", "new": "in the way\n"})
    run(made, "add", "staged.txt")
    run(made, "init", "--quiet", "nested")
    write(made, {"nested/precious.txt": "precious\n"})
    (made / ".git").read_text()
    (path / ".git/worktrees/w1/MERGE_HEAD").write_text(f"{start}\n")
    (path / ".git/worktrees/w1/index.lock").write_text("")
    hand_over_worktree(world.open(path), made, other, branch="two")
    assert run(made, "status", "--porcelain", "--branch").split("\n") == ["## two", "?? nested/"]
    assert (made / "a.txt").read_text() == "two\n"
    assert (made / "new/c.txt").read_text() == "c\n"
    assert not (made / "folder").exists()
    assert not (made / "left.txt").exists()
    assert (made / "cache/kept.txt").exists()
    assert (made / "nested/precious.txt").exists()


def test_a_worktree_that_an_agent_made_a_repository_of_its_own_is_not_handed_over(
    world: World,
) -> None:
    path = world.repository()
    for name in ("w1", "w2"):
        add_worktree(world.open(path), world.folder / name, head(path))
    link = world.folder / "w1/.git"
    link.write_text((world.folder / "w2/.git").read_text())
    with pytest.raises(WorkspaceUnusable, match="no worktree"):
        hand_over_worktree(world.open(path), world.folder / "w1", head(path))
    link.unlink()
    run(world.folder / "w1", "init", "--quiet")
    with pytest.raises(WorkspaceUnusable, match="no worktree"):
        hand_over_worktree(world.open(path), world.folder / "w1", head(path))


@pytest.mark.parametrize("state", ["whole", "locked", "half made", "folder gone", "read only"])
def test_a_worktree_is_removed_in_whatever_state_it_is(world: World, state: str) -> None:
    path = world.repository()
    repository = world.open(path)
    made, other = world.folder / "w1", world.folder / "w2"
    add_worktree(repository, made, head(path))
    add_worktree(repository, other, head(path))
    _bring_into_state(path, made, state)
    remove_worktree(repository, made)
    assert not made.exists()
    assert [each.name for each in (path / ".git/worktrees").iterdir()] == ["w2"]
    assert list_worktrees(repository, world.folder) == [other]
    remove_worktree(repository, made)
    add_worktree(repository, made, head(path))


def _bring_into_state(path: Path, made: Path, state: str) -> None:
    if state == "locked":
        run(path, "worktree", "lock", str(made))
    elif state == "half made":
        # As git leaves it that was killed before it wrote where the worktree is.
        administration = path / ".git/worktrees/w1"
        for each in administration.iterdir():
            each.unlink() if each.is_file() else shutil.rmtree(each)
        (administration / "locked").write_text("initializing\n")
    elif state == "folder gone":
        shutil.rmtree(made)
    elif state == "read only":
        (made / "folder").chmod(0o500)


def test_worktrees_of_others_are_not_listed(world: World) -> None:
    path = world.repository()
    run(path, "worktree", "add", "--quiet", "../elsewhere/mine")
    add_worktree(world.open(path), world.folder / "work/w1", head(path))
    assert list_worktrees(world.open(path), world.folder / "work") == [world.folder / "work/w1"]


@pytest.mark.parametrize("how", ["assume-unchanged", "skip-worktree", "sparse"])
def test_a_worktree_is_handed_over_whole_whatever_git_was_told_not_to_look_at(
    world: World, how: str
) -> None:
    path = world.repository()
    made = world.folder / "w1"
    add_worktree(world.open(path), made, head(path), branch="one")
    if how == "sparse":
        run(made, "sparse-checkout", "set", "--no-cone", "/a.txt")
    else:
        run(made, "update-index", f"--{how}", "a.txt", "folder/b.txt")
        write(made, {"a.txt": "stale\n"})
        (made / "folder/b.txt").unlink()
    hand_over_worktree(world.open(path), made, head(path), branch="two")
    assert (made / "a.txt").read_text() == "one\n"
    assert (made / "folder/b.txt").read_text() == "b\n"
    assert run(made, "status", "--porcelain") == ""
