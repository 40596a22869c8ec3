"""What the source may not hold: SQL outside the store, silenced types, files of many nouns."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/holdfast"
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

SQL = re.compile(
    r"\s*(?:(?:SELECT|INSERT|UPDATE|DELETE|WITH)\s"
    r"|select\s.*\sfrom\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s)",
    re.DOTALL,
)


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith("store/")])
def test_sql_is_written_in_the_store_alone(module: str) -> None:
    texts = [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse((SOURCE / module).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [place for place, text in texts if SQL.match(text)] == []


@pytest.mark.parametrize("module", MODULES)
def test_no_type_error_is_silenced(module: str) -> None:
    assert re.findall(r"type:\s*ignore", (SOURCE / module).read_text()) == []
