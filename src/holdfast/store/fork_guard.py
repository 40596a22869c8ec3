"""The fork guard: refuses connections, and SQLite files, that a forked process has inherited."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.threads import fork_generation

_FileId = tuple[int, int]
# Global, because SQLite too keeps one list of open files for the whole process.
_OPEN_FILES: dict[object, tuple[int, _FileId]] = {}


class OwningProcess:
    """The process in which an object was opened."""

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
    """Note that this process has a SQLite file open; forked children inherit the note."""
    with suppress(OSError):
        _OPEN_FILES[owner] = (os.getpid(), _read_file_id(path))


def note_closed_file(owner: object) -> None:
    _OPEN_FILES.pop(owner, None)


def refuse_inherited_file(path: Path) -> None:
    """Refuse a SQLite file that was open when this process was forked.

    SQLite remembers which locks a process has on a file. A child inherits that memory but not the
    locks: the child would write without locks, and lose its writes when the parent closes the file.
    """
    try:
        identity = _read_file_id(path)
    except OSError:
        # The file does not exist, or SQLite says what is wrong with it when it opens the file.
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
