"""Keeps a forked child from its parent's connections, and from a file it could not lock."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.threads import fork_generation

_FileId = tuple[int, int]
# Of the process and not of an object, as is what it guards: SQLite's own list of the files it has.
_OPEN_FILES: dict[object, tuple[int, _FileId]] = {}


class OwningProcess:
    """Where something was opened."""

    def __init__(self) -> None:
        self._generation = fork_generation()

    def is_current(self) -> bool:
        return self._generation == fork_generation()

    def check(self) -> None:
        if not self.is_current():
            raise StoreError(
                "this was opened in another process, from which this one was forked, and neither "
                "its connections nor its threads came along; open a new Holdfast after the fork"
            )


def note_open_file(owner: object, path: Path) -> None:
    """Remember that this process has a SQLite file open, for the children that inherit it."""
    with suppress(OSError):
        _OPEN_FILES[owner] = (os.getpid(), _read_file_id(path))


def note_closed_file(owner: object) -> None:
    _OPEN_FILES.pop(owner, None)


def refuse_inherited_file(path: Path) -> None:
    """Refuse a SQLite file that was open when this process was forked.

    SQLite remembers which locks a process has on a file. A child inherits that memory but not the
    locks: it would write without any, and lose what it wrote when its parent closes the file.
    """
    try:
        identity = _read_file_id(path)
    except OSError:
        # It is not there; or whatever is wrong with it, SQLite says it when it opens the file.
        return
    if any(
        process != os.getpid() and known == identity
        for process, known in list(_OPEN_FILES.values())
    ):
        raise StoreError(
            f"{path} was open in another process when this one was forked from it, and SQLite "
            "cannot lock it safely here; fork before the first use of the Holdfast, or start "
            "processes with the method 'spawn' or 'forkserver'"
        )


def _read_file_id(path: Path) -> _FileId:
    found = path.stat()
    return found.st_dev, found.st_ino
