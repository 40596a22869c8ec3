"""The demo, as `make demo` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_kills_a_worker_and_still_does_each_step_once() -> None:
    shown = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, text=True, timeout=90, check=False
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "kill -9" in shown.stdout
    assert "refused, stale_token" in shown.stdout
    assert "no violations" in shown.stdout
    assert "Each step done once, in order." in shown.stdout
