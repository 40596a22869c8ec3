"""References: moved only from where they are expected, and the same move twice is one."""

from __future__ import annotations

import pytest

from holdfast.errors import BranchMoved, GitFailed
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.references import (
    ReferenceMove,
    list_references,
    move_reference,
    remove_left_locks,
)
from holdfast.worker.git.repository import open_repository, read_reference
from tests.contract.worker.git.killed_move import write_program
from tests.contract.worker.git.repositories import World, commit_files, head, run, save

NAME = "refs/holdfast/attempts/t_1.1"


def test_a_reference_is_made_moved_and_deleted_each_once(world: World) -> None:
    path = world.repository()
    repository, first = world.open(path), head(path)
    second = commit_files(path, first, {"a.txt": "two\n"})
    for _ in range(2):
        move_reference(repository, ReferenceMove(reference=NAME, new=first, old=None))
    with pytest.raises(BranchMoved):
        move_reference(repository, ReferenceMove(reference=NAME, new=second, old=None))
    for _ in range(2):
        move_reference(repository, ReferenceMove(reference=NAME, new=second, old=first))
    assert list_references(repository, "refs/holdfast") == {NAME: second}
    run(path, "pack-refs", "--all")
    with pytest.raises(BranchMoved):
        move_reference(repository, ReferenceMove(reference=NAME, new=None, old=first))
    for _ in range(2):
        move_reference(repository, ReferenceMove(reference=NAME, new=None, old=second))
    assert read_reference(repository, NAME) is None
    assert list((world.git.home / "unfinished").iterdir()) == []


def test_a_git_that_was_killed_leaves_no_lock_at_a_reference(world: World) -> None:
    path = world.repository()
    first = head(path)
    lock = path / ".git" / f"{NAME}.lock"
    lock.parent.mkdir(parents=True)
    program = write_program(
        world.folder, f'case "$*" in *update-ref*) echo {first} > {lock}; kill -9 $$;; esac'
    )
    git = Git(program=program, version=world.git.version, home=world.git.home)
    move = ReferenceMove(reference=NAME, new=first, old=None)
    with pytest.raises(GitFailed):
        move_reference(open_repository(git, path), move)
    assert not lock.exists()
    assert remove_left_locks(world.open(path)) == []
    move_reference(world.open(path), move)


def test_a_reference_whose_name_is_a_folder_is_told(world: World) -> None:
    path = world.repository()
    move_reference(
        world.open(path), ReferenceMove(reference="refs/heads/a/b", new=head(path), old=None)
    )
    with pytest.raises(GitFailed, match="refs/heads/a/b"):
        move_reference(
            world.open(path), ReferenceMove(reference="refs/heads/a", new=head(path), old=None)
        )


def test_a_repository_with_longer_hashes_gets_references_too(world: World) -> None:
    path = world.folder / "long"
    path.mkdir()
    run(path, "init", "--quiet", "--object-format=sha256")
    first = save(path, "Begin")
    assert len(first) == 64
    for _ in range(2):
        move_reference(world.open(path), ReferenceMove(reference=NAME, new=first, old=None))
    other = save(path, "More")
    with pytest.raises(BranchMoved):
        move_reference(world.open(path), ReferenceMove(reference=NAME, new=other, old=None))
    assert list_references(world.open(path), "refs/holdfast") == {NAME: first}
