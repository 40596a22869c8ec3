"""What no file of the repository may hold: work left behind, and addresses in the lock."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Whatever .gitignore names by folder, and git's own.
SKIPPED = {".git", "node_modules"} | {
    line.rstrip("/")
    for line in (ROOT / ".gitignore").read_text().splitlines()
    if line.endswith("/") and "*" not in line
}

# Written in halves, so that this file does not hold what it forbids.
LEFT_BEHIND = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
ADDRESS = re.compile(
    r"\w+://|\bfile:|--(?:extra-)?index-url|--find-links|@ |(?:^|\s)/", re.MULTILINE
)


def _files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(folder, name) for name in sorted(names))


def test_no_work_is_left_behind_in_a_comment() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _files()
        for match in LEFT_BEHIND.finditer(path.read_text(errors="ignore"))
    ]
    assert found == []


def test_the_lock_names_versions_and_hashes_but_no_addresses() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert [lock.name for lock in locks] == ["all.txt", "build.txt", "dev.txt", "runtime.txt"]
    for lock in locks:
        text = lock.read_text()
        pins = re.findall(r"^[a-z0-9-]+==\S+.*\\\n +--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[a-z]", text, re.MULTILINE)) > 0
        assert ADDRESS.findall(text) == []
