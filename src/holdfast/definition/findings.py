"""Findings: the mistakes found in one file, and the search for the position of a word."""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.definition.nodes import FileNode, Mark
from holdfast.errors import InvalidFile, InvalidWorkflowFile, Mistake

MAX_SHOWN = 100
Hint = str | Callable[[], str]


class UnreadableValue(Exception):
    """A value that cannot be read, or text that cannot be read from a mark on."""

    def __init__(self, mark: Mark, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.mark = mark
        self.message = message
        self.hint = hint


class Findings:
    """The mistakes of a file; hints are computed at the end, and only for the mistakes shown."""

    def __init__(self, name: str, text: str, kind: type[InvalidFile] = InvalidWorkflowFile) -> None:
        self.name = name
        self._kind = kind
        self._lines = text.splitlines()
        self._found: list[tuple[Mark, str, Hint]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, mark: Mark, message: str, hint: Hint = "") -> None:
        self._found.append((mark, message, hint))

    def make_error(self) -> InvalidFile:
        """The error with all mistakes in the order of the file, each once."""
        unique = {(mark, message): hint for mark, message, hint in reversed(self._found)}
        ordered = sorted(unique.items(), key=lambda each: (each[0][0].line, each[0][0].column))
        shown = [self._mistake(*found, hint) for found, hint in ordered[:MAX_SHOWN]]
        if len(ordered) > MAX_SHOWN:
            more = f"and {len(ordered) - MAX_SHOWN} more mistakes from here on"
            shown.append(self._mistake(ordered[MAX_SHOWN][0][0], more, ""))
        return self._kind(self.name, shown)

    def _mistake(self, mark: Mark, message: str, hint: Hint) -> Mistake:
        within = 1 <= mark.line <= len(self._lines)
        return Mistake(
            line=mark.line,
            column=mark.column,
            message=message,
            hint=hint if isinstance(hint, str) else hint(),
            source=self._lines[mark.line - 1] if within else "",
        )

    def locate_word(self, node: FileNode, word: str) -> Mark:
        """The mark of a word inside a node, or that of the node where the word is not found."""
        whole = re.match(r"\w", word) is not None
        written = re.escape(word)
        pattern = re.compile(rf"(?<![\w.-]){written}(?![\w-]|\.\w)" if whole else written)
        for line in range(node.mark.line, min(node.end, len(self._lines)) + 1):
            start = node.mark.column - 1 if line == node.mark.line else 0
            if found := pattern.search(self._lines[line - 1], start):
                return Mark(line, found.start() + 1)
        return node.mark
