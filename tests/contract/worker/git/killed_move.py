"""A process that moves a branch, and that a test kills at one of its git commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from holdfast.worker.git.branch_moves import BranchMove, move_branch
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.repository import open_repository


def main(program: str, home: str, path: str, old: str, new: str) -> None:
    git = Git(program=Path(program), version=(2, 38), home=Path(home))
    move_branch(open_repository(git, Path(path)), BranchMove(branch="main", old=old, new=new))


def write_program(folder: Path, script: str) -> Path:
    """A git that does something first; `$number` is how many commands there were before."""
    program = folder / "git"
    counter = folder / "counter"
    program.write_text(
        f'#!/bin/sh\nnumber=$(wc -l < {counter})\necho $* >> {counter}\n{script}\nexec git "$@"\n'
    )
    program.chmod(0o755)
    counter.write_text("")
    return program


def run_killed(program: Path, home: Path, path: Path, old: str, new: str) -> bool:
    """Whether the process was killed."""
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, *map(str, (program, home, path)), old, new],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode != 0


if __name__ == "__main__":
    main(*sys.argv[1:])
