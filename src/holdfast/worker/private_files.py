"""Private files: those of a home that are named by their path, opened as `StatePath` opens them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.worker.state_path import StatePath


def open_private(path: Path, flags: int, home: Path) -> int:
    """Open a file below a home; what is made, with the folders on the way, is its owner's alone."""
    return _place(path, home).open(flags, make=bool(flags & os.O_CREAT))


def read_private(path: Path, home: Path) -> bytes:
    """What a file below a home holds."""
    return _place(path, home).read()


def write_private(path: Path, text: str, home: Path) -> None:
    """Have a file below a home hold a text and nothing else, at one moment for whoever reads it."""
    _place(path, home).write(text.encode())


def _place(path: Path, home: Path) -> StatePath:
    return StatePath(home, path.relative_to(home).parts)
