"""Package docstrings: each names every module and every room of its package in a line."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/holdfast"
LINE = re.compile(r"^- `(\w+)` +\S", re.MULTILINE)


def test_every_package_docstring_has_a_line_for_each_of_its_modules() -> None:
    wrong = []
    for init in sorted(SOURCE.rglob("__init__.py")):
        modules = [path.stem for path in init.parent.glob("*.py") if path.stem[:2] != "__"]
        rooms = [path.parent.name for path in init.parent.glob("*/__init__.py")]
        there = Counter(modules + rooms)
        text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        named = Counter(LINE.findall(text))
        place = init.relative_to(SOURCE).as_posix()
        wrong += [f"{place}: no line for {name}" for name in sorted(there - named)]
        wrong += [f"{place}: a line too many for {name}" for name in sorted(named - there)]
    assert wrong == [], "\n".join(wrong)
