"""Read-only folders: where nobody makes a file, whoever runs the tests."""

from __future__ import annotations

import os
from pathlib import Path


def read_only_folder(near: Path) -> Path:
    """A folder in which this user makes no file; what root makes the kernel alone refuses."""
    if os.geteuid() == 0:
        return Path("/sys")
    kept = near / "kept"
    kept.mkdir(mode=0o500)
    return kept
