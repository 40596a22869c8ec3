"""The git command: bounded in its time and its output, and it leaves no process behind."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from holdfast.errors import GitFailed, InvalidInput
from holdfast.worker.git import git_command
from holdfast.worker.git.git_command import Git, GitPlace


def make_git(folder: Path, script: str) -> Git:
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Git(program=program, version=(2, 38), home=folder / "home")


def test_a_git_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_command, "SECONDS", 0.3)
    monkeypatch.setattr(git_command, "GRACE_SECONDS", 0.1)
    git = make_git(tmp_path, f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/child; wait; wait")
    with pytest.raises(GitFailed, match="did not end within"):
        git.run("status", place=GitPlace(folder=tmp_path))
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    until = time.monotonic() + 5
    while child.exists() and "Z" not in (child / "stat").read_text().split()[2]:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_git_that_writes_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = make_git(tmp_path, "yes")
    monkeypatch.setattr(git_command, "OUTPUT_BYTES", 100_000)
    with pytest.raises(GitFailed, match="wrote more than 100000 bytes"):
        git.run("status", place=GitPlace(folder=tmp_path))
    answer = git.ask("status", place=GitPlace(folder=tmp_path), limit=10)
    assert (answer.output, answer.cut) == (b"y\n" * 5, True)


def test_a_git_that_reads_nothing_is_no_trouble(tmp_path: Path) -> None:
    git = make_git(tmp_path, "exec <&-; echo done")
    answer = git.run("status", place=GitPlace(folder=tmp_path), given=b"x" * 1_000_000)
    assert answer.text == "done"


def test_a_failure_tells_the_command_the_place_and_what_git_wrote(tmp_path: Path) -> None:
    git = make_git(tmp_path, "echo broken >&2; exit 7")
    words = re.escape(f"git status -x in {tmp_path} failed: broken")
    with pytest.raises(GitFailed, match=words) as failed:
        git.run("status", "-x", place=GitPlace(folder=tmp_path))
    assert failed.value.code == 7
    with pytest.raises(GitFailed, match="failed: No such file"):
        git.run("status", place=GitPlace(folder=tmp_path / "missing"))
    with pytest.raises(InvalidInput, match="NUL"):
        git.run("status\0", place=GitPlace(folder=tmp_path))


def test_git_is_told_to_ask_nobody_and_inherits_no_variables_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TRACE", "1")
    monkeypatch.setenv("GIT_SSH", "touch")
    git = make_git(tmp_path, "env; tty; true")
    told = git.run("status", place=GitPlace(folder=tmp_path)).text
    variables = dict(line.partition("=")[::2] for line in told.splitlines())
    assert "GIT_TRACE" not in variables
    assert "GIT_SSH" not in variables
    assert variables["GIT_TERMINAL_PROMPT"] == "0"
    for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_EDITOR", "GIT_SSH_COMMAND"):
        assert Path(variables[name]).name == "false", name
    assert variables["LC_ALL"] == "C"
    assert "not a tty" in told


def test_a_descriptor_that_is_held_stays_open_in_git(tmp_path: Path) -> None:
    git = make_git(tmp_path, "echo there > /dev/fd/$1")
    read, write = os.pipe()
    script = (tmp_path / "git").read_text().replace("$1", str(write))
    (tmp_path / "git").write_text(script)
    git.run("status", place=GitPlace(folder=tmp_path).holding(write))
    assert os.read(read, 100) == b"there\n"
    os.close(read)
    os.close(write)
