"""Checkouts of this repository: a second one made from a revision, and processes that measure one.

A process of a checkout has the benchmarks and the `src` of that checkout on its path, whatever the
modules of either are called.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import checkout_process

HERE = Path(__file__).parents[1]
# A revision without this file has no benchmarks that could be asked for a measure.
_NEEDED = "benchmarks/scenarios.py"


class CheckoutError(Exception):
    """No second checkout can be measured, for the reason that the message gives."""


class Checkout:
    """One checkout and its process, which does nothing until it is asked for a measure."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def ask(self, kind: str, *arguments: object) -> Any:  # noqa: ANN401 - what JSON has
        """Have the process call a method of `checkout_process.Measures`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{json.dumps([kind, *arguments])}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            answer = ""
        else:
            answer = self._process.stdout.readline()
        if not answer:
            text = f"the process of {self.name} ended instead of answering; its error is above"
            raise CheckoutError(text)
        return json.loads(answer)


def find_commit(revision: str) -> str:
    """The commit that a revision names, if this is a git checkout and the commit has benchmarks."""
    if shutil.which("git") is None:
        raise CheckoutError("a second checkout is made by git, and there is no git on the PATH")
    if not (HERE / ".git").exists():
        raise CheckoutError(f"a second checkout needs a git checkout, and {HERE} is none")
    try:
        commit = _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except CheckoutError as error:
        raise CheckoutError(f"git finds no commit that {revision!r} names") from error
    if not _git("ls-tree", "--name-only", commit, _NEEDED):
        raise CheckoutError(f"{revision} has no {_NEEDED}, so it cannot be measured")
    return commit


def describe_commit(commit: str) -> str:
    return _git("log", "-1", "--format=%h %s", commit)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A worktree of a commit, removed in the end."""
    with tempfile.TemporaryDirectory(prefix="holdfast-checkout-") as home:
        folder = Path(home) / commit
        _git("worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder))


@contextmanager
def measuring(name: str, folder: Path, *arguments: str) -> Iterator[Checkout]:
    """A process that measures the checkout in a folder; ends with the block."""
    command = python_command(Path(checkout_process.__file__))
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env=environment_of(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C is for the command, which then ends this process and those it has started.
        start_new_session=True,
    )
    try:
        yield Checkout(name, process)
        process.communicate()
    except BaseException:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def python_command(script: Path) -> list[str]:
    """Run a script without its own folder on the path, so that only `environment_of` decides."""
    return [sys.executable, "-P", str(script)]


def environment_of(folder: Path) -> dict[str, str]:
    """The environment of a process that imports the code of a checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(folder)))}


def _git(*arguments: str) -> str:
    ended = subprocess.run(
        ["git", "-C", str(HERE), *arguments],  # noqa: S607 - the git of whoever measures
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise CheckoutError(f"git {' '.join(arguments)}: {ended.stderr.strip()}")
    return ended.stdout.strip()
