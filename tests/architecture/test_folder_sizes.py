"""Folder sizes: what a folder of the package holds can be taken in at a glance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/holdfast"
MOST_FILES = 25


def test_no_folder_has_more_than_25_python_files() -> None:
    files = Counter(path.parent for path in SOURCE.rglob("*.py"))
    crowded = [
        f"{folder.relative_to(SOURCE)}: {count} files"
        for folder, count in sorted(files.items())
        if count > MOST_FILES
    ]
    assert crowded == [], "\n".join(crowded)
