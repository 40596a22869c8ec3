"""Attempt logs: written as the output comes, the middle left out where they grow too long."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from io import FileIO
from typing import Self

from holdfast.errors import StoreUnwritable
from holdfast.worker.files.state_paths import StatePath

MOST_BYTES = 50_000_000
KEPT_AT_THE_END = 64 * 1024
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
CUT_NOTE = b"\n[the log was cut here: it is full]\n"

log = logging.getLogger("holdfast.worker")


class AttemptLog:
    """A log of at most `most` bytes; of a longer one, the beginning and the end are kept.

    An error while writing is logged, and does not fail the step.
    """

    def __init__(self, path: StatePath, most: int = MOST_BYTES) -> None:
        self._path = path
        self._room = max(0, most - KEPT_AT_THE_END)
        self._left_out_bytes = 0
        self._tail = b""
        self._broken = False
        self._file = -1
        try:
            self._file = path.open(_APPEND, make=True)
        except OSError as error:
            self._note_error(error)

    def write(self, data: bytes) -> None:
        fits, rest = data[: self._room], data[self._room :]
        self._room -= len(fits)
        self._write_now(fits)
        if rest:
            self._left_out_bytes += len(rest)
            self._tail = (self._tail + rest)[-KEPT_AT_THE_END:]

    def close(self) -> None:
        """Write the end that was kept, after a line that counts the bytes left out before it."""
        missing = self._left_out_bytes - len(self._tail)
        if missing:
            self._write_now(f"\n[holdfast: {missing} bytes were left out here]\n".encode())
        self._write_now(self._tail)
        self._tail, self._left_out_bytes, self._room = b"", 0, 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write_now(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._file >= 0 and not self._broken:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            self._note_error(error)

    def _note_error(self, error: OSError) -> None:
        self._broken = True
        log.warning("%s is not written any further: %s", self._path, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append_to_log(path: StatePath, chunk: bytes) -> int:
    """Add to a log that is not open, and give its length; a full log is cut once, with a note."""
    try:
        with os.fdopen(path.open(_APPEND, make=True), "ab", buffering=0) as file:
            size = file.tell()
            fits = chunk[: MOST_BYTES - size] if size < MOST_BYTES else b""
            _write_all(file, fits + CUT_NOTE if fits and len(fits) < len(chunk) else fits, size)
            return file.tell()
    except OSError as error:
        raise StoreUnwritable(path.path, error.strerror) from error


def _write_all(file: FileIO, data: bytes, size: int) -> None:
    """Write all data or none of it, because a refused piece is sent again."""
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError:
        with suppress(OSError):
            file.truncate(size)
        raise
