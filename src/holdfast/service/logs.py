"""The logs of attempts, one file each, kept in the folder of the store's state."""

from __future__ import annotations

import os
from typing import BinaryIO

from holdfast.errors import InvalidInput
from holdfast.service.place import Place
from holdfast.worker.files.state_directory import state_of
from holdfast.worker.files.state_paths import StatePath

TAIL = 4_096


def log_path(place: Place, task_id: str, attempt: int) -> StatePath:
    """Where a worker on this machine writes the log of an attempt."""
    return state_of(place.url).log(task_id, attempt)


def last_line(place: Place, task_id: str, attempt: int) -> tuple[str, float] | None:
    """The last line of a log that says something, and when it was written, in seconds."""
    try:
        with _open(place, task_id, attempt) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = [line for line in file.read().splitlines() if line.strip()]
            when = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    return (lines[-1].decode(errors="replace").strip(), when) if lines else None


def read_log(place: Place, task_id: str, attempt: int, start: int = 0) -> bytes:
    """What a log holds from a place on; nothing when there is none yet."""
    try:
        with _open(place, task_id, attempt) as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        path = log_path(place, task_id, attempt)
        raise InvalidInput("log", f"{path} cannot be read: {error.strerror}") from error


def _open(place: Place, task_id: str, attempt: int) -> BinaryIO:
    return os.fdopen(log_path(place, task_id, attempt).open(os.O_RDONLY), "rb")
