"""Saved copies: the content of a SQLite store whose file is gone, beside its old path."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from itertools import chain, count
from pathlib import Path
from shlex import quote

import apsw

from holdfast.errors import StoreError, StoreGone
from holdfast.store.database import IDENTITIES_FILE
from holdfast.store.sqlite.backup import write_copy

FOLDER_MODE = 0o700
# In a folder that others can write, the name may lead anywhere: no links, no waiting for a pipe.
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST_IDENTITIES = 65_536


def read_identities(store: Path) -> bytes:
    """The file that tells whose the folder of a store is; a new folder without it is refused."""
    try:
        with os.fdopen(os.open(store.parent / IDENTITIES_FILE, _OPEN_FLAGS), "rb") as file:
            return file.read(_LARGEST_IDENTITIES) or b""
    except OSError:
        return b""


def save_copy(source: apsw.Connection, store: Path, identities: bytes = b"") -> Path:
    """Write what a connection still reads to a new file, and return its path.

    The file is in the store's folder, which is made again if it is gone too; else in the nearest
    folder above; else in the folder for temporary files.
    """
    problems: list[str] = []
    for folder in _folders_to_try(store.parent):
        try:
            _make_folder(folder, identities)
            return _save_in(folder, source, store.name)
        except (OSError, apsw.Error, StoreError) as error:
            problems.append(f"{folder}: {error}")
    raise StoreError("; ".join(problems))


def refuse_lost_store(store: Path) -> None:
    """Refuse to make an empty store at the path of a store that is gone and has a saved copy."""
    if store.exists():
        return
    copies = sorted(store.parent.glob(f"{escape(store.name)}.saved-*.db"))
    if copies:
        raise StoreGone(
            f"the file of the store is gone: there is none at {store}, but what it held is saved "
            f"in {copies[-1]}; `{describe_restore(copies[-1], store)}` brings it back; to begin an "
            "empty store, move what is saved elsewhere",
            saved=copies[-1],
        )


def describe_restore(copy: Path, store: Path) -> str:
    """The shell command that restores a saved copy."""
    return f"holdfast db restore {quote(str(copy))} --db {quote(str(store))}"


def save_copy_again(source: apsw.Connection, copy: Path, identities: bytes = b"") -> None:
    """Write a saved copy again after somebody has removed it with its folder."""
    try:
        _make_folder(copy.parent, identities)
        write_copy(source, copy)
    except (OSError, apsw.Error) as error:
        raise StoreError(f"{copy} was removed, and cannot be written again: {error}") from error


def _folders_to_try(beside: Path) -> Iterator[Path]:
    yield beside
    yield next(each for each in beside.parents if each.exists())
    yield Path(tempfile.gettempdir())


def _make_folder(folder: Path, identities: bytes) -> None:
    if folder.exists():
        return
    folder.mkdir(mode=FOLDER_MODE, parents=True)
    # The copy has the store's secret, and the file that ignored the folder in git is gone.
    with suppress(OSError):
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        if identities:
            (folder / IDENTITIES_FILE).touch(mode=0o600)
            (folder / IDENTITIES_FILE).write_bytes(identities)


def _save_in(folder: Path, source: apsw.Connection, store: str) -> Path:
    for target in (folder / name for name in _copy_names(store)):
        if target.exists():
            continue
        # Another process of this store may save its copy under the same name at this moment.
        with suppress(FileExistsError):
            write_copy(source, target)
            return target
    raise AssertionError("names do not end")


def _copy_names(store: str) -> Iterator[str]:
    named = f"{store}.saved-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    return chain([f"{named}.db"], (f"{named}-{number}.db" for number in count(2)))
