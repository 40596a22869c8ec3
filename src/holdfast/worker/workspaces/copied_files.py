"""Copied files: files of a checkout that git does not track, brought into a worktree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.errors import RepositoryUnusable, WorkspaceUnusable
from holdfast.worker.git.repository import Repository, list_tracked

_NEVER = frozenset({".git", ".holdfast"})


def copy_files(repository: Repository, worktree: Path, globs: Sequence[str]) -> list[str]:
    """Copy the files that globs name; their names. Nothing leads out of either folder."""
    if repository.bare or not globs:
        return []
    # A file of the commit is not the one of the checkout, even where they have one name.
    tracked = list_tracked(repository) | list_tracked(repository, worktree)
    names = sorted({name for glob in globs for name in _find_files(repository.path, glob)})
    copied = [name for name in names if name not in tracked]
    for name in copied:
        try:
            _copy_file(repository.path / name, worktree, name)
        except OSError as error:
            reason = f"cannot get a copy of {name} (workspace: copy): {error.strerror or error}"
            raise WorkspaceUnusable(worktree, reason) from error
    return copied


def _find_files(top: Path, glob: str) -> Iterator[str]:
    try:
        found = list(top.glob(glob.rstrip("/")))
    except (ValueError, NotImplementedError, IndexError) as error:
        raise RepositoryUnusable(top, f"cannot be searched for {glob!r}: {error}") from error
    for path in found:
        if path.is_dir() and not path.is_symlink():
            files = [Path(folder, each) for folder, _, names in os.walk(path) for each in names]
        else:
            files = [path]
        yield from (str(each.relative_to(top)) for each in files if _may_be_copied(top, each))


def _may_be_copied(top: Path, path: Path) -> bool:
    """Whether a path is a file of the checkout itself, and leads nowhere else."""
    if _NEVER & set(path.relative_to(top).parts):
        return False
    real, inside = Path(os.path.realpath(path)), Path(os.path.realpath(top))
    return real.is_file() and real.is_relative_to(inside)


def _copy_file(path: Path, worktree: Path, name: str) -> None:
    target = worktree / name
    inside = Path(os.path.realpath(worktree))
    if not Path(os.path.realpath(target.parent)).is_relative_to(inside):
        # A folder of the commit is a link that leads out.
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or target.exists():
        target.unlink()
    shutil.copy2(path, target)
