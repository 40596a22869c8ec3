"""The source of the package: no SQL outside the store, and no silenced type errors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/holdfast"
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

SQL = re.compile(
    r"\s*(?:(?:SELECT|INSERT|UPDATE|DELETE|WITH)\s"
    r"|select\s.*\sfrom\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s)",
    re.DOTALL,
)


def test_sql_is_written_in_the_store_alone() -> None:
    outside = [module for module in MODULES if not module.startswith("store/")]
    texts = [
        (f"{module}:{node.lineno}", node.value)
        for module in outside
        for node in ast.walk(ast.parse((SOURCE / module).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    found = [place for place, text in texts if SQL.match(text)]
    assert found == [], "\n".join(found)


def test_no_type_error_is_silenced() -> None:
    silenced = re.compile(r"type:\s*ignore")
    found = [module for module in MODULES if silenced.search((SOURCE / module).read_text())]
    assert found == [], "\n".join(found)
