"""A home that came with a repository is refused, and git is asked without running what it holds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast.errors import NotTrusted
from holdfast.service.admin.tokens import read_token
from tests.contract.cli.command_line import Typed
from tests.contract.cli.homes.foreign_homes import (
    cloned,
    git,
    looked_at_afresh,
)


@pytest.mark.usefixtures("known")
def test_the_committed_home_and_token_of_a_clone_are_not_used(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = cloned(typed, tmp_path)
    assert (home / "token").exists()
    for words in (["up", "--port", "0"], ["serve", "--port", "0"], ["worker"], ["token"], ["open"]):
        assert "is tracked by git" in typed.refused(5, *words)
    assert "is tracked by git" in typed.refused(5, "open", "--server", "http://127.0.0.1:8765")
    # A store that was named does not make the home around it one to be obeyed.
    with pytest.raises(NotTrusted, match="is tracked by git"):
        read_token("postgresql://host/jobs")
    monkeypatch.setenv("HOLDFAST_TOKEN", "x" * 40)
    assert "is tracked by git" in typed.refused(5, "worker", "--server", "http://127.0.0.1:1")
    assert not Path("RAN").exists()
    assert typed.json("trust", ".")["items"][0]["tracked"] is True
    assert "evil" in typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_a_clone_where_a_home_of_ones_own_once_stood_is_refused(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    os.chdir(tmp_path / "clone")
    typed.ok("init", "--bare")
    os.chdir(tmp_path)
    shutil.rmtree(tmp_path / "clone")
    cloned(typed, tmp_path)
    looked_at_afresh()
    assert "is tracked by git" in typed.refused(5, "runs")
    # What was unpacked has no git that could tell.
    shutil.rmtree(tmp_path / "clone" / ".git")
    assert "was not made here" in typed.refused(5, "runs")


def test_a_home_that_git_has_come_to_track_is_refused(typed: Typed, tmp_path: Path) -> None:
    typed.ok("init", "--bare")
    git(Path(), "init", "-q")
    typed.ok("runs")
    git(Path(), "add", "-f", ".holdfast/holdfast.db")
    looked_at_afresh()
    assert "is tracked by git" in typed.refused(5, "runs")
    git(Path(), "commit", "-q", "-m", "Begin")
    git(Path(), "worktree", "add", "-q", str(tmp_path / "linked"))
    os.chdir(tmp_path / "linked")
    assert "is tracked by git" in typed.refused(5, "runs")


def test_a_repository_that_says_its_files_lie_elsewhere_hides_no_home(
    typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    git(Path(), "init", "-q")
    git(Path(), "add", "-f", ".holdfast/holdfast.db")
    git(Path(), "config", "core.worktree", str(tmp_path))
    looked_at_afresh()
    assert "is tracked by git" in typed.refused(5, "runs")


@pytest.mark.usefixtures("known")
def test_nothing_that_a_repository_configures_is_run_to_ask_whether_git_tracks_a_home(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloned(typed, tmp_path)
    ran = tmp_path / "RAN"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    # Also a program of the repository that is called git, where the current folder is looked in.
    shutil.copy(hook, "git")
    git(Path(), "config", "core.fsmonitor", str(hook))
    git(Path(), "status")
    assert ran.exists()
    ran.unlink()
    monkeypatch.setenv("PATH", f":.:{tmp_path / 'clone'}:{os.environ['PATH']}")
    assert "git cannot be asked" in typed.refused(5, "runs")
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH'].split(':', 3)[3]}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert "is tracked by git" in typed.refused(5, "runs")
    assert not ran.exists()


@pytest.mark.parametrize("junk", ["pipe", "pipe in it", "text", "nul", "folder", "huge"])
def test_a_repository_that_is_none_is_told_of_and_keeps_nobody_waiting(
    junk: str, typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    repository = tmp_path / "project" / ".git"
    if junk == "pipe":
        os.mkfifo(repository)
    elif junk.startswith("pipe") or junk in {"folder", "huge"}:
        repository.mkdir()
        if junk == "huge":
            (repository / "index").touch()
            os.truncate(repository / "index", 1 << 40)
        elif junk != "folder":
            os.mkfifo(repository / "index")
    else:
        repository.write_text("nothing" if junk == "text" else "gitdir: \0")
    looked_at_afresh()
    assert "git cannot be asked" in typed.refused(5, "runs")
    # Where that was so when it was trusted, it is so later on.
    typed.ok("trust", ".")
    typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_without_git_a_home_that_a_repository_may_hold_is_refused_and_others_are_not(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloned(typed, tmp_path)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "git cannot be asked" in typed.refused(5, "runs")
    # What git lists of a repository is read, so that no command waits for git to be started.
    os.chdir(tmp_path / "project")
    typed.ok("init", "--bare")
    Path("src").mkdir()
    Path("src/shop.py").touch()
    monkeypatch.setenv("PATH", path)
    git(Path(), "init", "-q")
    git(Path(), "add", "src")
    git(Path(), "commit", "-q", "-m", "Begin")
    git(Path(), "worktree", "add", "-q", str(tmp_path / "linked"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    looked_at_afresh()
    typed.ok("runs")
    os.chdir(tmp_path / "linked")
    typed.ok("init", "--bare")
    typed.ok("runs")
