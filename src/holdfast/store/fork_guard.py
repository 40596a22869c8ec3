"""Keeps a forked child from its parent's connections, and from a file it could not lock."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.threads import fork_generation

_Identity = tuple[int, int]
# Of the process and not of an object, as is what it guards: SQLite's own list of the files it has.
_OPEN: dict[object, tuple[int, _Identity]] = {}


class HomeProcess:
    """Where something was opened."""

    def __init__(self) -> None:
        self._generation = fork_generation()

    def here(self) -> bool:
        return self._generation == fork_generation()

    def check(self) -> None:
        if not self.here():
            raise StoreError(
                "this was opened in another process, from which this one was forked, and neither "
                "its connections nor its threads came along; open a new Holdfast after the fork"
            )


def note_open(owner: object, path: Path) -> None:
    """Remember that this process has a SQLite file open, for the children that inherit it."""
    with suppress(OSError):
        _OPEN[owner] = (os.getpid(), _identify(path))


def note_closed(owner: object) -> None:
    _OPEN.pop(owner, None)


def refuse_inherited(path: Path) -> None:
    """Refuse a SQLite file that was open when this process was forked.

    SQLite remembers which locks a process has on a file. A child inherits that memory but not the
    locks: it would write without any, and lose what it wrote when its parent closes the file.
    """
    try:
        identity = _identify(path)
    except OSError:
        # It is not there; or whatever is wrong with it, SQLite says it when it opens the file.
        return
    if any(home != os.getpid() and known == identity for home, known in list(_OPEN.values())):
        raise StoreError(
            f"{path} was open in another process when this one was forked from it, and SQLite "
            "cannot lock it safely here; fork before the first use of the Holdfast, or start "
            "processes with the method 'spawn' or 'forkserver'"
        )


def _identify(path: Path) -> _Identity:
    found = path.stat()
    return found.st_dev, found.st_ino
