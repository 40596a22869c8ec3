"""Patches in a terminal: the changed files with their lines, and the change itself in colours."""

from __future__ import annotations

from typing import Any

from holdfast.cli.app.terminal import cut, escape, paint, width_of
from holdfast.cli.render.formats import format_count

View = dict[str, Any]
_BARS = 20
_LONGEST_PATH = 60
_COLOURS = (("+++", "bold"), ("---", "bold"), ("+", "green"), ("-", "red"), ("@@", "cyan"))


def draw_changed_files(change: View) -> list[str]:
    """One line for each changed file, and one for all of them together."""
    files = change["files"]
    width = min(max((width_of(escape(each["path"])) for each in files), default=0), _LONGEST_PATH)
    most = max((each["added"] + each["removed"] for each in files), default=0)
    lines = [_draw_file(each, width, most) for each in files]
    return [*lines, summarize_change(change)]


def _draw_file(file: View, width: int, most: int) -> str:
    path = cut(escape(file["path"]), width)
    pad = " " * (width - width_of(path))
    added, removed = file["added"], file["removed"]
    if file.get("binary"):
        return f"{path}{pad}  binary, {file['change']}"
    share = min(1.0, _BARS / most) if most else 0.0
    plus, minus = (
        paint(_bar(n, share, sign), colour)
        for n, sign, colour in ((added, "+", "green"), (removed, "-", "red"))
    )
    said = "" if file["change"] == "changed" else f"  {file['change']}"
    return f"{path}{pad}  {added + removed:>5}  {plus}{minus}{said}"


def _bar(count: int, share: float, sign: str) -> str:
    return sign * (max(1, round(count * share)) if count else 0)


def summarize_change(change: View) -> str:
    """`3 files, 12 lines added, 4 removed`, as an approval shows it in one line."""
    if not change["files"]:
        return "nothing changed"
    lines = f"{format_count(change['added'], 'line')} added, {change['removed']} removed"
    cut_off = ", cut off: the change is longer than is kept" if change.get("truncated") else ""
    return f"{format_count(len(change['files']), 'file')}, {lines}{cut_off}"


def draw_patch(patch: str) -> list[str]:
    """The lines of a patch, without characters that would act on the terminal."""
    return [_draw_line(line) for line in patch.removesuffix("\n").split("\n")]


def _draw_line(line: str) -> str:
    shown = escape(line, keep="\t")
    style = next((style for sign, style in _COLOURS if line.startswith(sign)), None)
    if line.startswith("diff --git "):
        style = "bold"
    return shown if style is None else paint(shown, style)
