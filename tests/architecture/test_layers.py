"""The contracts on imports hold: layers downwards only, and a model without I/O."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINT = Path(sys.executable).with_name("lint-imports")


def test_imports_go_down_only() -> None:
    # In a process of its own: import-linter configures logging, which switches off other loggers.
    shown = subprocess.run(
        [LINT, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
