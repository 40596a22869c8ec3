"""Files of attempts: their logs in the store's state directory."""

from __future__ import annotations

import os
from typing import BinaryIO

from holdfast.errors import InvalidInput
from holdfast.model.text import strip_terminal_codes
from holdfast.service.project.project import StoreLocation
from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.files.state_paths import StatePath

TAIL_BYTES = 4_096


def log_path(location: StoreLocation, task_id: str, attempt: int) -> StatePath:
    """The path that a worker on this machine writes the log of an attempt to."""
    return find_state_directory(location.url).log(task_id, attempt)


def read_last_line(location: StoreLocation, task_id: str, attempt: int) -> tuple[str, float] | None:
    """The last line of a log that is not blank, and the time of the last write, in seconds."""
    try:
        with _open_log(location, task_id, attempt) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            written = file.read()
            when = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    # Split as bytes, because text also ends lines at characters that stand within a line.
    for line in reversed(written.splitlines()):
        if shown := strip_terminal_codes(line.decode(errors="replace")).strip():
            return shown, when
    return None


def read_log(location: StoreLocation, task_id: str, attempt: int, start: int = 0) -> bytes:
    """The bytes of a log from `start` on; none when there is no log yet."""
    try:
        with _open_log(location, task_id, attempt) as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        path = log_path(location, task_id, attempt)
        raise InvalidInput("log", f"{path} cannot be read: {error.strerror}") from error


def _open_log(location: StoreLocation, task_id: str, attempt: int) -> BinaryIO:
    return os.fdopen(log_path(location, task_id, attempt).open(os.O_RDONLY), "rb")
