"""State paths: paths below a state directory, opened part by part and through no symbolic link.

A command, or the sender of a copied directory, may have left a link where a log or a file of a step
should be. No function here follows such a link, or leaves the directory.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import geteuid
from pathlib import Path

from holdfast.errors import InvalidInput

LINK_REASON = "it is reached through a symbolic link, which is not followed; remove the link"
NO_FILE_REASON = "it is no regular file; remove it"
FOREIGN_REASON = "it belongs to another user; remove it"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# `O_NONBLOCK`, so that a pipe instead of a file does not block.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class StatePath:
    """A root, which may itself be reached by links, and the names that lead down from it."""

    root: Path
    names: tuple[str, ...] = ()

    def __truediv__(self, name: str) -> StatePath:
        if not _NAME.fullmatch(name) or name in {".", ".."}:
            raise InvalidInput("path", f"{name[:60]!r} is no name of a file or folder")
        return replace(self, names=(*self.names, name))

    @property
    def path(self) -> Path:
        """The plain path, for messages and for tests of existence."""
        return self.root.joinpath(*self.names)

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def parent(self) -> StatePath:
        return replace(self, names=self.names[:-1])

    def __str__(self) -> str:
        return str(self.path)

    @contextmanager
    def folder(self, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the path as a folder; `make` makes missing ones, for the owner alone."""
        if make and not self.root.is_dir():
            from holdfast.worker.files.homes import make_private_directory  # noqa: PLC0415 - homes hold state too

            make_private_directory(self.root)
        descriptor = os.open(self.root, _FOLDER)
        try:
            for name in self.names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=descriptor)
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def open(self, flags: int, *, make: bool = False) -> int:
        """A descriptor of the path as a file; an OSError says why it cannot be opened.

        The file belongs to this user, or to the owner of a root that this user has named or trusts.
        """
        try:
            with self.parent.folder(make=make) as folder:
                file = os.open(self.name, flags | _FILE, 0o600, dir_fd=folder)
        except OSError as error:
            raise self._explain_error(error) from error
        try:
            self._refuse_foreign(os.fstat(file))
        except OSError:
            os.close(file)
            raise
        return file

    def _explain_error(self, error: OSError) -> OSError:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            return OSError(errno.ELOOP, LINK_REASON, str(self))
        # A pipe without a reader.
        if error.errno == errno.ENXIO:
            return OSError(errno.EINVAL, NO_FILE_REASON, str(self))
        return OSError(error.errno, error.strerror, str(self))

    def _refuse_foreign(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, NO_FILE_REASON, str(self))
        if found.st_uid == geteuid():
            return
        from holdfast.worker.files.homes import is_home_of  # noqa: PLC0415 - homes hold state too

        owner = self.root.stat().st_uid
        if found.st_uid != owner or not is_home_of(self.root, owner):
            raise OSError(errno.EPERM, FOREIGN_REASON, str(self))

    def read(self, limit: int = -1, start: int = 0) -> bytes:
        with os.fdopen(self.open(os.O_RDONLY), "rb") as file:
            file.seek(start)
            return file.read(limit)

    def write(self, content: bytes) -> None:
        """Replace the content of the file at once: readers find all of it, or the old content."""
        temporary = self.parent / f"{self.name}.{os.urandom(6).hex()}.new"
        file = temporary.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, make=True)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(content)
            temporary.rename(self.name)
        except BaseException:
            temporary.remove()
            raise

    def rename(self, name: str) -> None:
        """Give the file another name in its folder, replacing a file of that name."""
        with self.parent.folder() as folder:
            os.replace(self.name, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self) -> None:
        """Remove the file, or a link instead of it, if there is one."""
        with suppress(FileNotFoundError), self.parent.folder() as folder:
            os.unlink(self.name, dir_fd=folder)

    def make_folder(self) -> FolderIdentity:
        """Make the folder; raises `FileExistsError` if the path exists already."""
        with self.parent.folder(make=True) as folder:
            os.mkdir(self.name, 0o700, dir_fd=folder)
            return FolderIdentity.of(os.stat(self.name, dir_fd=folder, follow_symlinks=False))

    def remove_folder(self, made: FolderIdentity | None = None) -> None:
        """Remove the folder with its content, if it belongs to this user.

        With `made`, only that very folder is removed, and not another one at the same path.
        """
        with suppress(OSError), self.parent.folder() as folder:
            found = os.stat(self.name, dir_fd=folder, follow_symlinks=False)
            own = stat.S_ISDIR(found.st_mode) and found.st_uid == geteuid()
            if own and made in {None, FolderIdentity.of(found)}:
                shutil.rmtree(self.name, ignore_errors=True, dir_fd=folder)

    def list_names(self) -> list[str]:
        """The names in the folder, without those that no `StatePath` can have."""
        with suppress(OSError), self.folder() as folder, os.scandir(folder) as found:
            return sorted(each.name for each in found if _NAME.fullmatch(each.name))
        return []


@dataclass(frozen=True, slots=True)
class FolderIdentity:
    """The device and inode of a folder, which no other folder has as long as it exists."""

    device: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> FolderIdentity:
        return cls(found.st_dev, found.st_ino)


def open_private(path: Path, flags: int, home: Path) -> int:
    """Open a file below a home; new files and folders are readable for their owner alone."""
    return _state_path(path, home).open(flags, make=bool(flags & os.O_CREAT))


def read_private(path: Path, home: Path) -> bytes:
    """The content of a file below a home."""
    return _state_path(path, home).read()


def write_private(path: Path, text: str, home: Path) -> None:
    """Replace the content of a file below a home at once."""
    _state_path(path, home).write(text.encode())


def _state_path(path: Path, home: Path) -> StatePath:
    return StatePath(home, path.relative_to(home).parts)
