"""The log of an attempt: written as it comes, its middle left out where it grows too long."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from io import FileIO
from typing import Self

from holdfast.errors import StoreUnwritable
from holdfast.worker.files.state_paths import StatePath

MOST = 50_000_000
KEPT_AT_THE_END = 64 * 1024
_ADD = os.O_WRONLY | os.O_CREAT | os.O_APPEND
CUT = b"\n[the log was cut here: it is full]\n"

log = logging.getLogger("holdfast.worker")


class Spool:
    """A file of at most so many bytes; of more, the beginning and the end are kept.

    That it cannot be written is told, and is no reason for a step to fail.
    """

    def __init__(self, path: StatePath, most: int = MOST) -> None:
        self._path = path
        self._room = max(0, most - KEPT_AT_THE_END)
        self._left_out = 0
        self._end = b""
        self._broken = False
        self._file = -1
        try:
            self._file = path.open(_ADD, make=True)
        except OSError as error:
            self._break(error)

    def write(self, data: bytes) -> None:
        fits, rest = data[: self._room], data[self._room :]
        self._room -= len(fits)
        self._put(fits)
        if rest:
            self._left_out += len(rest)
            self._end = (self._end + rest)[-KEPT_AT_THE_END:]

    def close(self) -> None:
        """Write what was kept of the end, after a line that says what is missing before it."""
        missing = self._left_out - len(self._end)
        if missing:
            self._put(f"\n[holdfast: {missing} bytes were left out here]\n".encode())
        self._put(self._end)
        self._end, self._left_out, self._room = b"", 0, 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._file >= 0 and not self._broken:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            self._break(error)

    def _break(self, error: OSError) -> None:
        self._broken = True
        log.warning("%s is not written any further: %s", self._path, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append(path: StatePath, chunk: bytes) -> int:
    """Add to a log that nobody has open, and say how long it is; one that is full is cut, once."""
    try:
        with os.fdopen(path.open(_ADD, make=True), "ab", buffering=0) as file:
            size = file.tell()
            fits = chunk[: MOST - size] if size < MOST else b""
            _write_all(file, fits + CUT if fits and len(fits) < len(chunk) else fits, size)
            return file.tell()
    except OSError as error:
        raise StoreUnwritable(path.path, error.strerror) from error


def _write_all(file: FileIO, data: bytes, size: int) -> None:
    """Write it all, or leave the file as long as it was: what is refused is sent again."""
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError:
        with suppress(OSError):
            file.truncate(size)
        raise
