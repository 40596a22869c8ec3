"""A server on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.server.local_server import Served, served


@pytest.fixture
def server(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(store_url, tmp_path / "home") as made:
        yield made


@pytest.fixture
def quick_server(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """The same for what has nothing to do with the database."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(sqlite_url, tmp_path / "home") as made:
        yield made
