"""A user of git with a worker, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.worker.git.repositories import World
from tests.contract.worker.workspaces.workspace_runs import WorkspaceRuns, workspace_runs


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user/.config"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return World(tmp_path)


@pytest.fixture
def runs(sqlite_store_url: str, world: World, tmp_path: Path) -> Iterator[WorkspaceRuns]:
    with workspace_runs(sqlite_store_url, world, tmp_path / "home") as made:
        yield made
