"""The contracts on imports hold: layers downwards only, and a model without I/O."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]


def test_imports_go_down_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    broken = lint_imports(no_cache=True, no_logo=True)
    assert broken == 0, capsys.readouterr().out
