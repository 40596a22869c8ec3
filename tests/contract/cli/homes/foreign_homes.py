"""Homes of another user, and clones that carry one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.worker.files import homes, state_paths
from tests.contract.cli.command_line import Typed

ANOTHER = 54_321
SETTINGS = "database: {}\n"


def looked_at_afresh() -> None:
    homes._accepted_homes.clear()  # noqa: SLF001 - another process would begin with none


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a path belong to another user: really so where root may, else this user is another."""
    if os.geteuid() == 0:
        for each in (path, *path.rglob("*")):
            os.chown(each, ANOTHER, ANOTHER, follow_symlinks=False)
    else:
        mine = os.geteuid()
        monkeypatch.setattr(homes, "geteuid", lambda: mine + 1)
        monkeypatch.setattr(state_paths, "geteuid", lambda: mine + 1)
    looked_at_afresh()


def make_home(typed: Typed, folder: Path) -> Path:
    """A home with a queued command in it, made by somebody who remembers it elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    here, before = Path.cwd(), os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(folder.parent / "state-of-another")
    os.chdir(folder)
    typed.ok("init", "--bare")
    (folder / "evil.yaml").write_text("name: evil\nsteps:\n  - {id: run, run: [touch, RAN]}\n")
    typed.ok("run", "evil.yaml")
    typed.ok("token")
    os.chdir(here)
    os.environ["XDG_STATE_HOME"] = before
    looked_at_afresh()
    return folder / ".holdfast"


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org", "-c", "commit.gpgsign=no"]
    asked = [shutil.which("git") or "git", "-C", str(folder), *named, *arguments]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    return done.stdout


def cloned(typed: Typed, tmp_path: Path) -> Path:
    """A clone of a repository with a committed home, in which the current folder is."""
    made = tmp_path / "of-another"
    make_home(typed, made)
    git(made, "init", "-q")
    git(made, "add", "-f", ".")
    git(made, "commit", "-q", "-m", "Begin")
    git(tmp_path, "clone", "-q", str(made), "clone")
    os.chdir(tmp_path / "clone")
    return tmp_path / "clone" / ".holdfast"
