"""Tests that users write: those of the page about testing, and those among the examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.acceptance.terminals import ROOT

PAGE = ROOT / "docs" / "how-to" / "testing.md"
BLOCK = re.compile(r"^```python\n# (\w+\.py)(?:, continued)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_tests(folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "holdfast.testing.pytest_plugin", "."],
        cwd=folder,
        # Alone, so that it is loaded once whether this environment tells pytest of it or not.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for name, code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        files[name].append(code)
    for name, blocks in files.items():
        (tmp_path / name).write_text("\n\n".join(blocks), encoding="utf-8")
    assert "6 passed" in run_tests(tmp_path)
    assert not (tmp_path / "shop.db").exists()


def test_the_tests_among_the_examples_pass(tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder, ignore=shutil.ignore_patterns("*.db*"))
    assert "8 passed" in run_tests(folder)
    assert not (folder / "orders.db").exists()
