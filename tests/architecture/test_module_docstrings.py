"""Module docstrings: each begins with the noun that its module is about."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/holdfast"
PRONOUN = re.compile(r"(?:What|Who|Why|Which|How)\b")


def test_no_module_docstring_opens_with_a_pronoun() -> None:
    opened = {
        path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for path in sorted(SOURCE.rglob("*.py"))
    }
    hidden = [
        f"{path.relative_to(SOURCE)}: {text.splitlines()[0]}"
        for path, text in opened.items()
        if PRONOUN.match(text)
    ]
    assert hidden == [], "\n".join(hidden)
