"""Files of older shapes, made from the SQL in tests/fixtures."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

FIXTURES = Path(__file__).parent / "fixtures"
# How many tasks the one has, and how many runs and steps of them come over from the other.
TASKS = 40
RUNS_AND_STEPS = 72


def make(path: Path, fixture: str, *more: str) -> Path:
    """A file with what a fixture holds, and with whatever else is done to it."""
    text = (FIXTURES / f"{fixture}.sql").read_text(encoding="utf-8")
    change(path, text, *more)
    return path


def change(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)
