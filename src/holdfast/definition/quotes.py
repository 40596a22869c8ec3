"""Quotes: words as YAML needs them written, and the text of a file that lacks quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from holdfast.definition.findings import UnreadableValue
from holdfast.definition.nodes import Mark

Read = Callable[[str], object]
TAG = "!"
LONGEST_LINE = 1_000
_BARE = re.compile(r"[A-Za-z0-9_./+-][A-Za-z0-9_./:+=@~-]*(?<![:-])|-+[A-Za-z0-9-]*[A-Za-z0-9]")
# Without quotes these are no texts, or numbers that may be written in another way than they were.
_NO_TEXT = re.compile(r"null|true|false|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_BLOCK_VALUE = re.compile(r"\s*(?:- +)*(?P<key>[\w-]+): +(?P<value>\S.*?)\s*$")
_FLOW_VALUE = re.compile(
    r"(?:[{,] *(?P<key>[\w-]+): +|[\[,] *)(?P<value>(?!\s)(?:\{\{.*?\}\}|[^,\[\]{}])+(?<! ))"
)


def quote_word(word: str) -> str:
    """A text as it stands in a list of YAML: with quotes where it needs them."""
    return word if _BARE.fullmatch(word) and not _NO_TEXT.fullmatch(word) else quote(word)


def quote(text: str) -> str:
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def suggest_quotes(text: str, mark: Mark, read: Read) -> str:
    """A hint to put quotes around the value at a mark, where the text can be read further then."""
    *before, line = text.splitlines(keepends=True)[: mark.line] or [""]
    if len(line) > LONGEST_LINE:
        return ""
    for key, start, end in _values_at(line, mark.column - 1):
        quoted = quote(line[start:end])
        mended = "".join((*before, line[:start], quoted, line[end:]))
        if _reads_past(mended, Mark(mark.line, start + len(quoted) + 1), read):
            return f"put quotes around it: {f'{key}: ' if key else ''}{quoted}"
    return ""


def _values_at(line: str, place: int) -> Iterator[tuple[str | None, int, int]]:
    """The values of a line around a place, each with its key, its start and its end."""
    for pattern in (_FLOW_VALUE, _BLOCK_VALUE):
        for found in pattern.finditer(line):
            within = found.start("value") <= place < found.end("value")
            if within and not found["value"].startswith(TAG):
                yield found["key"], *found.span("value")


def _reads_past(text: str, end: Mark, read: Read) -> bool:
    try:
        read(text)
    except UnreadableValue as error:
        return (error.mark.line, error.mark.column) > (end.line, end.column)
    return True
