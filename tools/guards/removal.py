"""Takes one guard out of a private copy of the package, and puts it back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.guards.predicates import Predicate

_CLAUSE = re.compile(r"-- clause: [a-z]+")
_COMMENT = re.compile(r"--[^\n]*")


class PackageCopy:
    """A copy of `holdfast` that goes before the installed one on PYTHONPATH."""

    def __init__(self, source: Path, home: Path) -> None:
        self.path = home
        self._source = source
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, home / source.name, ignore=ignored, dirs_exist_ok=True)

    @contextmanager
    def without(self, predicate: Predicate) -> Iterator[None]:
        place = self.path / self._source.name / predicate.path.relative_to(self._source)
        text = place.read_text(encoding="utf-8")
        place.write_text(remove(text, predicate), encoding="utf-8")
        try:
            yield
        finally:
            place.write_text(text, encoding="utf-8")


def remove(text: str, predicate: Predicate) -> str:
    """Make the predicate true for every row, its parameters still bound; a conflict goes whole.

    A clause that `why` reads as well keeps its text, in a comment that only `why` looks into:
    otherwise the explanation's tests would answer for the claim's.
    """
    if predicate.conflict:
        return text[: predicate.start] + text[predicate.end :]
    begin = text.rfind("\n", 0, predicate.start) + 1
    end = text.find("\n", predicate.end)
    end = len(text) if end < 0 else end
    line = text[begin:end]
    bare = _COMMENT.sub("", text[predicate.start : predicate.end]).strip()
    rest = text[predicate.end : end]
    changed = f"{text[begin : predicate.start]} ({bare} OR true){_COMMENT.sub('', rest)}"
    if _CLAUSE.search(line):
        changed += f"\n/*\n{line}\n*/"
    return text[:begin] + changed + text[end:]
