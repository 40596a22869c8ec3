"""The how-to about imports, its code run as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.older_files import RUNS_AND_STEPS, TASKS, make

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"


def test_the_code_of_the_page_imports_both_shapes(tmp_path: Path) -> None:
    make(tmp_path / "tasks.db", "older_tasks")
    make(tmp_path / "runs.db", "older_runs")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"{TASKS} made, 0 here before\n")
    assert f"{RUNS_AND_STEPS} made, 0 here before" in shown.stdout
    assert re.search(r"^a\.3 waiting → blocked t_", shown.stdout, re.MULTILINE)
