"""Files that processes append lines to: what a process wrote before it was killed is there."""

from __future__ import annotations

import os
from pathlib import Path


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, *words: object) -> None:
        """Append one line in one piece, whoever else writes."""
        line = " ".join(map(str, words)) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def read(self) -> list[tuple[str, ...]]:
        if not self._path.exists():
            return []
        return [tuple(line.split()) for line in self._path.read_text().splitlines()]
