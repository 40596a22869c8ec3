"""Workspaces beside bare git: a worktree of many files, opened and closed by each.

python -m benchmarks.workspaces [--files 10000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.places import Places
from benchmarks.waiting import MILLISECONDS, TURNS, Figure
from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.workspaces.attempt_workspace import WorkspacePorts
from holdfast.worker.workspaces.upkeep import remove_unused_worktrees

FOLDER_FILES = 100
PATIENCE = 120
_AUTHOR = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
_STEP = "steps:\n  - {id: look, run: ['true']}\n"


def open_and_close(places: Places, database: str, files: int) -> list[Figure]:
    """A step that does nothing, in a workspace of its own, beyond the same step in none.

    The removal of the worktree counts too, as `git worktree remove` does on the other side.
    """
    if database != "sqlite":
        # All of it is git and files.
        return []
    with (
        TemporaryDirectory(dir=places.folder) as name,
        _home(Path(name) / "home"),
        places.new(database) as url,
        Holdfast(url) as hf,
        hf.worker(agents=["*"], concurrency=1),
    ):
        folder = Path(name)
        repository = _make_repository(folder / "repository", files)
        inside, outside = (
            _write_workflow(folder / f"{kind}.yaml", f"name: {kind}\n{heading}{_STEP}")
            for kind, heading in (
                ("inside", f"workspace: {{git: {repository}, keep: 1ms}}\n"),
                ("outside", ""),
            )
        )
        ports = WorkspacePorts(
            store=engine_of(hf),
            state=StateDirectory(root=folder / "home"),
            is_stopped=lambda *_: True,
        )

        def run(workflow: Path) -> None:
            hf.workflow_file(workflow).start().result(PATIENCE)

        def remove() -> None:
            removed = remove_unused_worktrees(ports, ports.find_git(), [])
            assert len(removed) == 1, removed

        run(outside)
        bare, opened = [], []
        for _ in range(TURNS):
            bare.append(_time(lambda: _use_bare_worktree(repository, folder / "bare")))
            opened.append(_time(lambda: run(inside)) - _time(lambda: run(outside)) + _time(remove))
    ratio = median(one / other for one, other in zip(opened, bare, strict=True))
    return [
        Figure(
            what=f"a workspace of {files:,} files opened and closed",
            database=database,
            value=f"{median(opened) * MILLISECONDS:.0f} ms",
            beside=f"{median(bare) * MILLISECONDS:.0f} ms of git worktree add and remove "
            f"({ratio:.2f} times that)",
        )
    ]


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    before = os.environ.get("HOLDFAST_HOME")
    os.environ["HOLDFAST_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOLDFAST_HOME"]
        else:
            os.environ["HOLDFAST_HOME"] = before


def _make_repository(path: Path, files: int) -> Path:
    for number in range(files):
        file = path / f"folder{number // FOLDER_FILES}" / f"file{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 40)
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "Begin")):
        _git(path, *words)
    return path


def _use_bare_worktree(repository: Path, path: Path) -> None:
    _git(repository, "worktree", "add", "--quiet", "--detach", str(path))
    _git(repository, "worktree", "remove", str(path))


def _git(path: Path, *words: str) -> None:
    command = ["git", "-C", str(path), *_AUTHOR, *words]
    subprocess.run(command, check=True)


def _write_workflow(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _time(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=10_000)
    with TemporaryDirectory(prefix="holdfast-workspaces-") as folder:
        places = Places(folder=Path(folder), postgres="")
        for each in open_and_close(places, "sqlite", options.parse_args().files):
            print(f"{each.what}: {each.value}, beside {each.beside}")


if __name__ == "__main__":
    main()
