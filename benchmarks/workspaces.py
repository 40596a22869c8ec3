"""Workspaces beside bare git: a worktree of a repository of many files, made and removed by each.

Both do the same in turn, and each pair gives one ratio: `python -m benchmarks.workspaces`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.worker.git.git_command import Git
from holdfast.worker.git.repository import open_repository, resolve_commit
from holdfast.worker.git.worktrees import add_worktree, remove_worktree

PER_FOLDER = 100


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--pairs", type=int, default=5)
    chosen = options.parse_args()
    top = Path(tempfile.mkdtemp(prefix="holdfast-workspaces-"))
    try:
        ratios = [measure_pair(top, number) for number in prepare(top, chosen.files, chosen.pairs)]
    finally:
        shutil.rmtree(top)
    middle = statistics.median(ratios)
    print(f"{chosen.files} files: opening and closing takes {middle:.2f} of bare git's time")


def prepare(top: Path, files: int, pairs: int) -> range:
    repository = top / "repository"
    for number in range(files):
        path = repository / f"{number // PER_FOLDER}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 40)
    run(repository, "init", "--quiet")
    run(repository, "add", "--all")
    author = ["-c", "user.name=Bench", "-c", "user.email=bench@localhost"]
    run(repository, *author, "commit", "--quiet", "-m", "Files")
    return range(pairs)


def measure_pair(top: Path, number: int) -> float:
    """The time of Holdfast for one worktree, as a part of the time of git; they take turns."""
    repository = top / "repository"

    def use_git() -> None:
        path = str(top / f"bare{number}")
        run(repository, "worktree", "add", "--quiet", "--detach", path, "HEAD")
        run(repository, "worktree", "remove", path)

    def use_holdfast() -> None:
        opened = open_repository(Git.find(top / "home"), repository)
        path = top / f"ours{number}"
        add_worktree(opened, path, resolve_commit(opened, "HEAD"), branch=f"attempt{number}")
        remove_worktree(opened, path)

    calls = [use_git, use_holdfast]
    taken = {each: clock(each) for each in (calls if number % 2 else calls[::-1])}
    bare, ours = taken[use_git], taken[use_holdfast]
    print(f"git {bare:.3f} s, Holdfast {ours:.3f} s, ratio {ours / bare:.2f}")
    return ours / bare


def clock(call: Callable[[], None]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def run(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S607 - the user's own git


if __name__ == "__main__":
    main()
