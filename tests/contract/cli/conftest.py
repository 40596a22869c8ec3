"""A store, an engine on it by the clock on the wall, and a person who types commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Typed, logs_as_before
from tests.engines import opened


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A SQLite file; a module that is about SQL has its own, for each database."""
    return str(request.getfixturevalue("sqlite_url"))


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with opened(url, clock=SystemClock()) as engine:
        yield engine


@pytest.fixture
def typed(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Typed]:
    for name in (
        "HOLDFAST_HOME",
        "HOLDFAST_SERVER",
        "HOLDFAST_TASK",
        "HOLDFAST_ATTEMPT_TOKEN",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_DB", url)
    monkeypatch.chdir(tmp_path)
    with logs_as_before():
        yield Typed(capsys)
