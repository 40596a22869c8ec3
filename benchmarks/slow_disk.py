"""A disk on which a commit takes longer, as on most machines but the one at hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import psycopg
from psycopg.sql import SQL, Identifier, Literal

MICROSECONDS = 1_000_000


class SlowFile(apsw.VFSFile):
    def __init__(
        self, disk: SlowDisk, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> None:
        super().__init__(disk.base, name, flags)
        self._seconds = disk.seconds

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        time.sleep(self._seconds)
        super().xSync(flags)


class SlowDisk(apsw.VFS):
    def __init__(self, seconds: float) -> None:
        # By name: without one it would be whichever is the default, which is this one.
        self.base = apsw.vfs_names()[0]
        self.seconds = seconds
        super().__init__("holdfast-slow", self.base, makedefault=True)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return SlowFile(self, name, flags)


@contextmanager
def slow_disk(seconds: float, *urls: str) -> Iterator[None]:
    """Have each commit of whoever opens some stores meanwhile take so much longer."""
    disk = SlowDisk(seconds)
    try:
        for url in urls:
            if not url.startswith("sqlite"):
                _slow_down(url, seconds)
        yield
    finally:
        disk.unregister()


def _slow_down(url: str, seconds: float) -> None:
    settings = {"commit_delay": round(seconds * MICROSECONDS), "commit_siblings": 0}
    with psycopg.connect(url, autocommit=True) as server:
        database = Identifier(server.info.dbname)
        for name, value in settings.items():
            chosen = SQL("ALTER DATABASE {} SET {} = {}")
            server.execute(chosen.format(database, Identifier(name), Literal(value)))
