"""The audit log: each call to a server that changes something, its actor and its outcome."""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fcntl import LOCK_EX, flock
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.worker.files.homes import make_private_directory
from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.files.state_paths import open_private

AUDIT_FILE = "audit.log"
MAX_BYTES = 10_000_000
OLD_FILES = 9
# This process checks the length of the file after so many bytes or seconds: other processes write
# to the file too.
UNCHECKED_BYTES = 65_536
CHECK_INTERVAL = 1.0
# The process that begins a new file holds a lock on this one.
LOCK_FILE = "audit.lock"

log = logging.getLogger("holdfast.audit")
warnings = logging.getLogger("holdfast.server")
# The files are not handlers of the logger: making a log record takes longer than writing the line,
# and each call to the server has a line.
_files: list[AuditFile] = []
_encode = json.JSONEncoder(check_circular=False).encode


def write_entry(
    actor: str, action: str, outcome: str, *, role: str | None = None, about: str = ""
) -> None:
    """Write one line: the actor, the call, the code or status of the answer, and its subject."""
    named = actor if role is None else f"{actor} ({role})"
    entry = {"actor": actor, "role": role, "did": action, "became": outcome, "about": about}
    said = {name: value for name, value in entry.items() if value}
    for each in _files:
        each.write_entry(said)
    if log.handlers or log.propagate:
        more = f" {about}" if about else ""
        log.info("%s %s %s%s", named, action, outcome, more, extra={"audit": said})


def audit_path(url: str) -> Path:
    """The path of the audit log that the servers of a project write to."""
    return find_state_directory(url).root / AUDIT_FILE


def start_audit_file(url: str) -> None:
    """Have this process write the audit log to its file alone: it is too much for a console."""
    _files.append(AuditFile(url))
    log.propagate = False


class AuditFile(RotatingFileHandler):
    """The file of the audit log: JSON lines for the owner alone, the newest hundred megabytes."""

    def __init__(self, url: str) -> None:
        path = audit_path(url)
        self._failed = False
        try:
            make_private_directory(path.parent)
            super().__init__(path, maxBytes=MAX_BYTES, backupCount=OLD_FILES, encoding="utf-8")
        except OSError as error:
            raise InvalidInput("audit", f"{path} cannot be written: {error.strerror}") from error

    def _open(self) -> TextIOWrapper:
        """Open the file, at the start and after a rollover."""
        # So many bytes may be written, until that time, before the length is checked again.
        self._unchecked_bytes, self._unchecked_until = 0, 0.0
        # Somebody may have removed the folder since the last file was opened.
        make_private_directory(Path(self.baseFilename).parent)
        return open(self.baseFilename, "a", encoding="utf-8", opener=_open_below_home)

    def write_entry(self, said: Mapping[str, str | None]) -> None:
        """Write and flush one line; most lines need no check of the length of the file."""
        self.acquire()
        try:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = f"{_encode({'at': at, **said})}\n"
            self._unchecked_bytes -= len(line)
            if self._unchecked_bytes <= 0 or time.monotonic() >= self._unchecked_until:
                self._check_file(len(line))
            self._ensure_stream().write(line)
            self._ensure_stream().flush()
            self._failed = False
        except Exception as error:  # noqa: BLE001 - the call that the line is about is carried out
            # One warning, not one for each line: the log of warnings may be on the same disk.
            if not self._failed:
                warnings.warning("%s is not written any further: %s", self.baseFilename, error)
            self._failed = True
        finally:
            self.release()

    def _ensure_stream(self) -> TextIOWrapper:
        if self.stream is None:
            self.stream = self._open()
        return self.stream

    def _check_file(self, more: int) -> None:
        """Change to a file that another process has begun, or begin one where this file is full."""
        self._follow_new_file()
        if self._is_full(more):
            with self._hold_lock():
                self._follow_new_file()
                if self._is_full(more):
                    self.doRollover()

    def _follow_new_file(self) -> None:
        mine = os.fstat(self._ensure_stream().fileno())
        try:
            current = os.path.samestat(mine, Path(self.baseFilename).stat())
        except FileNotFoundError:
            current = False
        if not current:
            # The new file is opened first: if that fails, the next line tries again.
            left, self.stream = self._ensure_stream(), self._open()
            left.close()

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        lock = str(Path(self.baseFilename).with_name(LOCK_FILE))
        held = _open_below_home(lock, os.O_RDWR | os.O_CREAT)
        try:
            flock(held, LOCK_EX)
            yield
        finally:
            os.close(held)

    def _is_full(self, more: int) -> bool:
        found = os.fstat(self._ensure_stream().fileno())
        left = self.maxBytes - found.st_size - more
        self._unchecked_bytes, self._unchecked_until = (
            min(UNCHECKED_BYTES, left),
            time.monotonic() + CHECK_INTERVAL,
        )
        return left <= 0 and stat.S_ISREG(found.st_mode)


def _open_below_home(path: str, flags: int) -> int:
    return open_private(Path(path), flags, Path(path).parent)
