"""The map in CONTRIBUTING.md: a line for each package and each room."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/holdfast"
# A line of a list or of a table, which begins with the folder that it is about.
LINE = re.compile(r"^[-|] `src/holdfast/([\w/]+?)/?`.*\w", re.MULTILINE)


def test_the_map_has_a_line_for_each_package_and_room_and_for_nothing_else() -> None:
    inits = SOURCE.rglob("*/__init__.py")
    there = Counter(init.parent.relative_to(SOURCE).as_posix() for init in inits)
    named = Counter(LINE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    wrong = [f"{name}: no line" for name in sorted(there - named)]
    wrong += [f"{name}: a line too many" for name in sorted(named - there)]
    assert wrong == [], "\n".join(wrong)
