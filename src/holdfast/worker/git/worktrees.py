"""Worktrees: checkouts that Holdfast makes for attempts, hands over and removes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from holdfast.errors import RepositoryUnusable, WorkspaceUnusable
from holdfast.worker.git.git_command import GitPlace
from holdfast.worker.git.references import ReferenceMove, move_reference
from holdfast.worker.git.repository import HEADS, Repository, find_git_dir, read_small_file

# What git keeps beside HEAD while a person or an agent is in the middle of something.
OPERATIONS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "sequencer": "cherry-pick",
    "BISECT_LOG": "bisect",
}
_LEFT_FILES = ("AUTO_MERGE", "MERGE_MODE", "MERGE_MSG", "SQUASH_MSG", "REBASE_HEAD", "BISECT_START")


def add_worktree(
    repository: Repository, path: Path, commit: str, *, branch: str | None = None
) -> None:
    """Make a worktree at a commit, on a branch where one is named.

    The last part of its path must be a name that no other worktree of the repository has.
    """
    if os.path.lexists(path):
        raise RepositoryUnusable(path, "is there already; remove it, or take another folder")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    repository.git.run(
        *("worktree", "add", "--no-checkout", "--detach", str(path), commit),
        place=repository.references,
    )
    _check_out(repository, path, commit, branch)


def hand_over_worktree(
    repository: Repository, path: Path, commit: str, *, branch: str | None = None
) -> None:
    """Bring a worktree to another commit; files that git ignores stay, and nested repositories.

    The caller knows that every process which worked there has ended.
    """
    git_dir = find_own_git_dir(repository, path)
    remove_worktree_locks(repository, path)
    for name in (*OPERATIONS, *_LEFT_FILES):
        _remove(git_dir / name)
    place = place_worktree_content(repository, path)
    look_at_all_files(repository, path, place, missing=True)
    _check_out(repository, path, commit, branch)
    # A single -f leaves nested repositories alone.
    repository.git.run("clean", "-q", "-f", "-d", place=place)


def _check_out(repository: Repository, path: Path, commit: str, branch: str | None) -> None:
    git_dir = find_own_git_dir(repository, path)
    place = repository.references_of(git_dir)
    repository.git.run("update-ref", "--no-deref", "HEAD", commit, place=place)
    if branch is not None:
        move_reference(repository, ReferenceMove(reference=HEADS + branch, new=commit))
        repository.git.run("symbolic-ref", "HEAD", HEADS + branch, place=place)
    content = place_worktree_content(repository, path)
    repository.git.run("read-tree", "--reset", "-u", commit, place=content)


def place_worktree_content(repository: Repository, path: Path) -> GitPlace:
    """The place of commands on the files of a worktree."""
    git_dir = find_own_git_dir(repository, path)
    if any(git_dir.glob("sharedindex.*")):
        # The view of the repository does not have the other half of an index that is split.
        variables = {"GIT_WORK_TREE": str(path)}
        place = repository.references_of(git_dir).with_variables(**variables)
        repository.git.run("update-index", "--no-split-index", place=place)
    return repository.content_of(path, git_dir / "index")


def look_at_all_files(
    repository: Repository, path: Path, place: GitPlace, *, missing: bool
) -> None:
    """Take the marks from the index by which an agent has had git look at some files no more.

    A file that is not there is `missing` only by choice where it was marked as not checked out.
    """
    told = repository.git.run("ls-files", "-v", "-z", "--cached", place=place.reading()).names
    marked = {name: mark for mark, _, name in (line.partition(" ") for line in told)}
    assumed = [name for name, mark in marked.items() if mark.islower()]
    skipped = [
        name
        for name, mark in marked.items()
        if mark in "sS" and (missing or os.path.lexists(path / name))
    ]
    for option, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if names:
            given = b"".join(os.fsencode(name) + b"\0" for name in names)
            asked = ("update-index", option, "-z", "--stdin")
            repository.git.run(*asked, place=place, given=given)


def remove_worktree(repository: Repository, path: Path) -> None:
    """Remove a worktree in whatever state it is: half made, locked, or with its folder gone.

    The caller knows that every process which worked there has ended.
    """
    for git_dir in _administrations(repository, path):
        shutil.rmtree(git_dir, ignore_errors=True)
    # Folders without leave to write would keep their content.
    if os.path.lexists(path):
        _remove_folder(path)


def remove_worktree_locks(repository: Repository, path: Path) -> None:
    """Remove the locks that killed processes left in a worktree of Holdfast's own.

    The caller knows that every process which worked there has ended.
    """
    git_dir = find_own_git_dir(repository, path)
    for lock in git_dir.glob("*.lock"):
        lock.unlink(missing_ok=True)


def list_worktrees(repository: Repository, folder: Path) -> list[Path]:
    """The worktrees of a repository below a folder, those whose folders are gone included."""
    found = []
    for git_dir in sorted((repository.common / "worktrees").glob("*")):
        path = _path_of(git_dir)
        if path is not None and path.is_relative_to(folder):
            found.append(path)
    return found


def find_own_git_dir(repository: Repository, path: Path) -> Path:
    """The git folder of a worktree, which an agent may have replaced by a repository of its own."""
    git_dir = find_git_dir(path)
    known = None if git_dir is None else _path_of(git_dir)
    if (
        git_dir is None
        or git_dir.parent != repository.common.resolve() / "worktrees"
        or known is None
        or not _is_same(known, path)
    ):
        reason = f"is no worktree of {repository.common} any more; remove it, and begin anew"
        raise WorkspaceUnusable(path, reason)
    return git_dir


def _administrations(repository: Repository, path: Path) -> list[Path]:
    """The folders in which git keeps a worktree, half made ones included."""
    found = []
    for git_dir in (repository.common / "worktrees").glob("*"):
        known = _path_of(git_dir)
        half_made = known is None and git_dir.name == path.name
        if half_made or (known is not None and _is_same(known, path)):
            found.append(git_dir)
    return found


def _path_of(git_dir: Path) -> Path | None:
    text = (read_small_file(git_dir / "gitdir") or "").rstrip("\n")
    if not text or "\0" in text:
        return None
    return Path(os.path.normpath(git_dir / text)).parent


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _remove_folder(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        # Caches of packages are often made read-only.
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o700)  # noqa: PTH101 - os.walk gives texts
        shutil.rmtree(path)
