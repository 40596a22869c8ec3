"""The terminal: text without control characters, colours, JSON, lines and tables."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

from holdfast.model.text import strip_terminal_codes

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
# Control characters, and characters that change the direction of text or are invisible.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_INVISIBLE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_PAINT = re.compile("(\x1b\\[[0-9;]*m)")
_RESET = "\x1b[0m"


def escape(text: object, keep: str = "") -> str:
    """A text without codes of colours; what else acts on a terminal in it is escaped."""
    return _INVISIBLE.sub(
        lambda found: _escape_character(found[0], keep), strip_terminal_codes(str(text))
    )


def strip_codes_of(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """A JSON value with all its texts without codes of colours."""
    match value:
        case str():
            return strip_terminal_codes(value)
        case list():
            return [strip_codes_of(each) for each in value]
        case dict():
            return {
                strip_terminal_codes(name): strip_codes_of(each) for name, each in value.items()
            }
        case _:
            return value


def _escape_character(character: str, keep: str) -> str:
    if character in keep:
        return character
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    code = ord(character)
    return named or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")  # noqa: PLR2004


def is_terminal(stream: TextIO | None = None) -> bool:
    chosen = stream or sys.stdout
    return chosen.isatty() and os.environ.get("TERM") != "dumb"


def takes_colours() -> bool:
    return is_terminal() and not os.environ.get("NO_COLOR")


def paint(text: str, *styles: str) -> str:
    if not styles or not text or not takes_colours():
        return text
    codes = ";".join(STYLES[style] for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m"


def width_of(text: str) -> int:
    """The number of columns of a text; codes of colours take none."""
    plain = _PAINT.sub("", text)
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in plain
    )


def terminal_width() -> int | None:
    """The number of columns of the terminal; output to a file or a pipe has no limit."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def cut(text: str, most: int | None) -> str:
    """A text cut to a number of columns; its colours end with it."""
    if most is None or width_of(text) <= most:
        return text
    room, kept, coloured = max(0, most - 1), list[str](), False
    # Every second part is the code of a colour.
    for place, part in enumerate(_PAINT.split(text)):
        if place % 2:
            kept.append(part)
            coloured = part != _RESET
        else:
            fits = _cut_plain(part, room)
            kept.append(fits)
            room -= width_of(fits)
            if fits != part:
                break
    return "".join(kept) + "…" + (_RESET if coloured else "")


def _cut_plain(text: str, most: int) -> str:
    kept = text[:most]
    while width_of(kept) > most:
        kept = kept[:-1]
    return kept


# A mark stays with the word that it is about.
_PLAIN_WORDS = re.compile(r"(?:[✓✗◆●] +)?\S+")
# What is in quotes is one word of a command.
_COMMAND_WORDS = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'])+""")


def wrap_line(line: str, indent: int = 0, *, joiner: str = "") -> list[str]:
    """A line in as many as fit the terminal, broken between words; those after it are indented.

    A `joiner` ends each but the last: a backslash, so that a command can be pasted as it stands.
    """
    edge = terminal_width()
    if edge is None or width_of(line) <= edge:
        return [line]
    lines = [line[: len(line) - len(line.lstrip())]]
    room = edge - width_of(joiner)
    words = _COMMAND_WORDS if joiner else _PLAIN_WORDS
    for word, before in _split_words(line.strip(), words):
        last = lines[-1]
        if last.strip() and width_of(last) + width_of(before + word) > room:
            lines[-1] = last + joiner
            lines.append(" " * indent + word)
        else:
            lines[-1] = last + before + word
    return lines


def _split_words(text: str, words: re.Pattern[str]) -> list[tuple[str, str]]:
    """The words of a text, each with the spaces before it."""
    found = list(words.finditer(text))
    ends = [0, *(each.end() for each in found)]
    return [(each[0], text[end : each.start()]) for each, end in zip(found, ends, strict=False)]


def fit(line: str) -> str:
    """A line cut to the width of the terminal, with its colours."""
    return cut(line, terminal_width())


def print_line(line: str = "") -> None:
    """Print a line of the result, and flush it: the reader of a pipe may wait for this line."""
    print(line, flush=True)  # noqa: T201 - it is what a command line does


def print_note(line: str) -> None:
    """Print a line for the person on the error stream, apart from the result."""
    print(line, file=sys.stderr)  # noqa: T201 - the same


def format_json(value: object, indent: int | None = None) -> str:
    """JSON in which invisible characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _INVISIBLE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(value: object) -> None:
    print_line(format_json(value, indent=2))


def print_json_line(value: object) -> None:
    print_line(format_json(value))


def prepare_streams() -> None:
    """Escape characters that the encoding of a stream lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings; empty columns are left out, and the last column is cut to fit."""
    kept = [place for place, _ in enumerate(headings) if any(row[place] for row in rows)]
    if not kept:
        return
    widths = {
        place: max(width_of(headings[place]), *(width_of(row[place]) for row in rows))
        for place in kept
    }
    print_line(_table_line([(paint(headings[place], "dim"), widths[place]) for place in kept]))
    for row in rows:
        print_line(_table_line([(row[place], widths[place]) for place in kept]))


def _table_line(cells: Sequence[tuple[str, int]]) -> str:
    *first, (last, _) = cells
    begun = "".join(text + " " * (width - width_of(text) + 2) for text, width in first)
    edge = terminal_width()
    room = None if edge is None else max(10, edge - width_of(begun))
    return (begun + cut(last, room)).rstrip()
