"""Backups: a whole copy of a SQLite store that others write to, and the restore from a copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from holdfast.errors import InvalidInput, StoreError, StoreUnreachable
from holdfast.store.sqlite.connection import FILE_MODE, create_file

PAGES_AT_ONCE = 1_000
BUSY_MILLISECONDS = 5_000
# The endings of a database, of its log, and of the log's index.
_FILES = ("", "-wal", "-shm")
# With a new secret, no token from before the restore is valid for an attempt after it. Access
# tokens are revoked, because some may have been revoked after the backup was made.
_RENEWAL = """
UPDATE holdfast_meta SET value = lower(hex(randomblob(32))) WHERE name = 'secret';
DELETE FROM holdfast_worker;
UPDATE holdfast_access SET revoked_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
WHERE revoked_at IS NULL;
"""


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
        # For a copy SQLite may give only the kind of an error, and no text.
        described = f"{type(error).__name__}: {error}"
        raise StoreError(f"{source} could not be copied to {target}: {described}") from error


def write_copy(old: apsw.Connection, target: Path) -> None:
    """Copy what a connection reads to a new file, which only its owner can read.

    The copy has the store's secret. `FileExistsError` is raised if the file was made meanwhile.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))
    try:
        _copy_file(old, temporary)
        os.link(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _copy_file(old: apsw.Connection, target: Path) -> None:
    with closing(apsw.Connection(str(target))) as new:
        old.set_busy_timeout(5_000)
        # In one read transaction: otherwise the copy begins again after each commit of others.
        old.execute("BEGIN; SELECT count(*) FROM sqlite_schema").fetchall()
        try:
            with new.backup("main", old, "main") as backup:
                while not backup.done:
                    backup.step(PAGES_AT_ONCE)
        finally:
            old.execute("ROLLBACK")
        check = new.pragma("quick_check")
        if check != "ok":
            raise StoreError(f"the copy {target} is damaged, and was thrown away: {check}")
        new.pragma("journal_mode", "delete")


def restore(backup: Path, target: Path, kept: Path, prepare: Callable[[Path], None]) -> bool:
    """Restore the store from a backup; True if there was a store before, which is copied to `kept`.

    First a copy of the backup is prepared; an error of `prepare` ends the restore. The copy gets a
    new secret, so that no attempt leased before can be reported. Then the store is locked until it
    has the new content, so the copy at `kept` has everything that was ever committed to it.
    """
    with _scratch_file(target) as scratch:
        prepare_copy(backup, scratch, prepare)
        _renew_secret(scratch)
        there = target.exists()
        try:
            readable = there and _is_database(target)
            if there and not readable:
                _rename_unreadable(target, kept)
            create_file(target)
            with (
                closing(_open_exclusively(target)) as store,
                closing(apsw.Connection(str(scratch))) as new,
            ):
                if readable:
                    _copy_store(store, kept)
                _copy_pages(new, store)
        except apsw.BusyError as error:
            raise _still_open(target) from error
        except apsw.Error as error:
            raise StoreError(f"SQLite: {error}") from error
    return there


def refuse_other_files(backup: Path) -> None:
    """Refuse a file that is no SQLite database."""
    if not _is_database(backup):
        raise InvalidInput(
            "file", f"{backup} is no SQLite database; `holdfast db backup` makes one"
        )


def refuse_open_store(store: Path) -> None:
    """Refuse a store that another process has open: it cannot be restored."""
    if not _is_database(store):
        return
    try:
        _open_exclusively(store).close()
    except apsw.BusyError as error:
        raise _still_open(store) from error
    except apsw.Error as error:
        raise StoreError(f"SQLite: {error}") from error


def _still_open(store: Path) -> StoreUnreachable:
    return StoreUnreachable(f"another process has {store} open; stop it, and try again")


def prepare_copy(backup: Path, copy: Path, prepare: Callable[[Path], None]) -> None:
    """Copy a whole backup, and run `prepare` on the copy."""
    try:
        back_up(backup, copy)
    except StoreError as error:
        raise InvalidInput("file", f"{backup} is no whole SQLite database: {error}") from error
    prepare(copy)


def _rename_unreadable(store: Path, kept: Path) -> None:
    """Rename a file that SQLite cannot read, with its log, which is not that of the next file."""
    for end in _FILES:
        part = store.with_name(store.name + end)
        if part.exists():
            part.rename(kept.with_name(kept.name + end))


def _renew_secret(copy: Path) -> None:
    with closing(apsw.Connection(str(copy))) as connection:
        connection.execute(_RENEWAL)


def _is_database(path: Path) -> bool:
    try:
        with closing(apsw.Connection(str(path))) as connection:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.NotADBError, apsw.CorruptError):
        return False
    return True


@contextmanager
def _scratch_file(target: Path) -> Iterator[Path]:
    path = target.with_name(f".{target.name}.restoring.{os.getpid()}")
    try:
        yield path
    finally:
        for end in _FILES:
            path.with_name(path.name + end).unlink(missing_ok=True)


def _open_exclusively(path: Path) -> apsw.Connection:
    """A connection that keeps all others away until it is closed."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    try:
        connection.pragma("locking_mode", "exclusive")
        connection.execute("BEGIN EXCLUSIVE; COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _copy_store(store: apsw.Connection, path: Path) -> None:
    create_file(path)
    with closing(apsw.Connection(str(path))) as new:
        _copy_pages(store, new)
        new.pragma("journal_mode", "delete")


def _copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(PAGES_AT_ONCE)
