"""The how-to about imports, its code run as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from holdfast.importing.runs import STATUSES, TABLES

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "import.md"


def test_the_code_of_the_page_imports_both_shapes(tmp_path: Path) -> None:
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
    assert shown.stdout.startswith("4 made, 0 here before\n")
    assert "3 made, 0 here before\n  done → done: 1" in shown.stdout
    assert re.search(r"^a\.3 waiting → blocked t_", shown.stdout, re.MULTILINE)


def test_the_page_names_what_is_read_of_each_table_of_runs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for table, columns in TABLES.items():
        (row,) = re.findall(rf"^\| `{table}` \|(.*)\|$", page, re.MULTILINE)
        needed, _, statuses = (re.findall(r"`(\w+)`", cell) for cell in row.split("|"))
        assert (needed, statuses) == ([*columns], [*STATUSES[table]])
