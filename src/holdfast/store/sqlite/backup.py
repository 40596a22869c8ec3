"""A copy of a SQLite store that is whole, taken while others write to it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import apsw

from holdfast.errors import InvalidInput, StoreError
from holdfast.store.sqlite.connection import MODE

PAGES = 1_000


def back_up(source: Path, target: Path) -> int:
    """Copy a store to a new file and give its size; the file is there whole or not at all."""
    if target.exists():
        raise InvalidInput("target", f"{target} already exists; choose a new file")
    try:
        with closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)) as old:
            write_copy(old, target)
        return target.stat().st_size
    except FileExistsError as error:
        raise InvalidInput("target", f"{target} already exists; choose a new file") from error
    except OSError as error:
        raise InvalidInput("target", f"{target} cannot be written: {error.strerror}") from error
    except apsw.Error as error:
        # Of a copy SQLite may tell the kind of the error alone, and no text.
        told = f"{type(error).__name__}: {error}"
        raise StoreError(f"{source} could not be copied to {target}: {told}") from error


def write_copy(old: apsw.Connection, target: Path) -> None:
    """Copy what a connection reads to a new file, for its owner alone: it has the store's secret.

    `FileExistsError` where somebody else has made one of that name meanwhile.
    """
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, MODE))
    try:
        _copy_file(old, aside)
        os.link(aside, target)
    finally:
        aside.unlink(missing_ok=True)


def _copy_file(old: apsw.Connection, target: Path) -> None:
    with closing(apsw.Connection(str(target))) as new:
        old.set_busy_timeout(5_000)
        # At one moment: a copy that others write beside begins again after each of their commits.
        old.execute("BEGIN; SELECT count(*) FROM sqlite_schema").fetchall()
        try:
            with new.backup("main", old, "main") as backup:
                while not backup.done:
                    backup.step(PAGES)
        finally:
            old.execute("ROLLBACK")
        check = new.pragma("quick_check")
        if check != "ok":
            raise StoreError(f"the copy {target} is damaged, and was thrown away: {check}")
        new.pragma("journal_mode", "delete")
