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
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        # Made here, for its owner alone: it holds the store's secret.
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, MODE))
        _copy(source, aside)
        os.link(aside, target)
        return target.stat().st_size
    except FileExistsError as error:
        raise InvalidInput("target", f"{target} already exists; choose a new file") from error
    except OSError as error:
        raise InvalidInput("target", f"{target} cannot be written: {error.strerror}") from error
    except apsw.Error as error:
        # Of a copy SQLite may tell the kind of the error alone, and no text.
        told = f"{type(error).__name__}: {error}"
        raise StoreError(f"{source} could not be copied to {target}: {told}") from error
    finally:
        aside.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    with (
        closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)) as old,
        closing(apsw.Connection(str(target))) as new,
    ):
        old.set_busy_timeout(5_000)
        # At one moment: a copy that others write beside begins again after each of their commits.
        old.execute("BEGIN; SELECT count(*) FROM sqlite_schema")
        with new.backup("main", old, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
        check = new.pragma("quick_check")
        if check != "ok":
            raise StoreError(f"the copy of {source} is damaged, and was thrown away: {check}")
        new.pragma("journal_mode", "delete")
