"""A person who types commands, and whose homes are remembered in a folder of the test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.worker.files import homes
from tests.contract.cli.command_line import Typed, logs_as_before


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the homes of this test's user are remembered."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def typed(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Typed]:
    assert not state.exists()
    for name in list(os.environ):
        if name.startswith(("HOLDFAST_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(homes, "_accepted_homes", set())
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    with logs_as_before():
        yield Typed(capsys)


@pytest.fixture
def known(typed: Typed) -> None:
    """A user who has used this release before: nothing that comes now is from before it."""
    Path("before").mkdir()
    os.chdir("before")
    typed.ok("init", "--bare")
    os.chdir("..")
