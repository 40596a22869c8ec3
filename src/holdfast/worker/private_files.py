"""Private files: what a home keeps for its owner alone, opened through no symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from os import geteuid
from pathlib import Path

LINK = "it is reached through a symbolic link, which is not followed; remove the link"
NO_FILE = "it is no regular file; remove it"
FOREIGN = "it belongs to another user; remove it"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_private(path: Path, flags: int, home: Path) -> int:
    """Open a file below a home; an OSError says what is wrong with it.

    What is made, with the folders on the way, is for its owner alone.
    No folder between the home and the file may be a symbolic link, and the file neither. Its owner
    is this user, or that of a home that this user has named or trusts.
    """
    *folders, name = path.relative_to(home).parts
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        home_owner = os.fstat(folder).st_uid
        for each in folders:
            if flags & os.O_CREAT:
                with suppress(FileExistsError):
                    os.mkdir(each, 0o700, dir_fd=folder)
            inner = os.open(each, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        found = os.open(name, safe, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            raise OSError(errno.ELOOP, LINK, str(path)) from error
        # A pipe that nobody reads.
        if error.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, NO_FILE, str(path)) from error
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(folder)
    try:
        _refuse_foreign(os.fstat(found), path, home, home_owner)
    except OSError:
        os.close(found)
        raise
    return found


def _refuse_foreign(found: os.stat_result, path: Path, home: Path, home_owner: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, NO_FILE, str(path))
    if found.st_uid == geteuid():
        return
    from holdfast.worker.homes import is_said  # noqa: PLC0415 - it opens files of homes too

    if found.st_uid != home_owner or not is_said(home, home_owner):
        raise OSError(errno.EPERM, FOREIGN, str(path))


def read_private(path: Path, home: Path) -> bytes:
    """What a file below a home holds."""
    with os.fdopen(open_private(path, os.O_RDONLY, home), "rb") as file:
        return file.read()


def write_private(path: Path, text: str, home: Path) -> None:
    """Have a file below a home hold a text and nothing else, at one moment for whoever reads it."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(open_private(aside, flags, home), "w", encoding="utf-8") as file:
        file.write(text)
    aside.replace(path)
