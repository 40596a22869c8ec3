"""Patches: the text of a change as git writes it, read into files with their changed lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FILE = "diff --git "
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_MOVES = {"rename": "renamed", "copy": "copied"}
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchedFile:
    """One file of a patch: its path, what happened to it, and how many lines came and went."""

    path: str
    change: str
    added: int = 0
    removed: int = 0
    binary: bool = False


def read_patch(patch: str) -> list[PatchedFile]:
    """The files of a patch, in its order; a patch that was cut off gives the files it still has."""
    return [_read_file(lines) for lines in _split_files(patch)]


def _split_files(patch: str) -> Iterator[list[str]]:
    """The lines of each file. A changed line that looks like the head of a file is not one."""
    lines: list[str] = []
    left = [0, 0]
    for line in patch.split("\n"):
        if left[0] > 0 or left[1] > 0:
            left[0] -= line[:1] in ("-", " ", "")
            left[1] -= line[:1] in ("+", " ", "")
        elif found := _HUNK.match(line):
            left = [1 if each is None else int(each) for each in found.groups()]
        elif line.startswith(_FILE):
            if lines:
                yield lines
            lines = []
        lines.append(line)
    if lines and lines[0].startswith(_FILE):
        yield lines


def _read_file(lines: list[str]) -> PatchedFile:
    head, body = _split_head(lines)
    change, path = "changed", _path_of_title(lines[0])
    for line in head:
        word, _, rest = line.partition(" ")
        if word in ("new", "deleted") and rest.startswith("file mode"):
            change = "added" if word == "new" else "removed"
        elif word in _MOVES and rest.startswith("to "):
            change, path = _MOVES[word], _unquote(rest.removeprefix("to "))
        elif word in ("+++", "---") and rest != "/dev/null":
            path = _unquote(rest.removesuffix("\t"))[2:]
    return PatchedFile(
        path=path,
        change=change,
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        binary=any(line.startswith(("Binary files ", "GIT binary patch")) for line in head),
    )


def _split_head(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines that describe a file, and those of its hunks."""
    for place, line in enumerate(lines):
        if _HUNK.match(line):
            return lines[1:place], lines[place:]
    return lines[1:], []


def _path_of_title(title: str) -> str:
    """The path in the first line of a file, which names it twice: `a/PATH b/PATH`."""
    both = title.removeprefix(_FILE)
    if both.endswith('"'):
        return _unquote(both[both.rindex(' "') + 1 :])[2:]
    return both[len(both) // 2 + 1 :][2:]


def _unquote(path: str) -> str:
    """A path without the quotes that git puts around one with special characters."""
    if not path.startswith('"'):
        return path
    plain = _ESCAPED.sub(_read_escape, path[1:-1].encode())
    return plain.decode("utf-8", "replace")


def _read_escape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code.isdigit():
        return bytes([int(code, 8) & 0xFF])
    return bytes([_ESCAPES[code]]) if code in _ESCAPES else code
