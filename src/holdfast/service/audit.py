"""The audit: who changed what over a server, or tried to, and what became of it."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.worker.state import private, state_of

FILE = "audit.log"
MOST_BYTES = 10_000_000
OLDER = 9

log = logging.getLogger("holdfast.audit")


def tell(who: str, did: str, became: str, *, role: str | None = None, about: str = "") -> None:
    """One line: an actor, what they asked for, the code or status of the answer, and of what."""
    named = who if role is None else f"{who} ({role})"
    entry = {"actor": who, "role": role, "did": did, "became": became, "about": about}
    said = {name: value for name, value in entry.items() if value}
    log.info("%s %s %s%s", named, did, became, f" {about}" if about else "", extra={"audit": said})


def audit_path(url: str) -> Path:
    """Where the servers of a project keep it."""
    return state_of(url).root / FILE


def keep_audit(url: str) -> None:
    """Have this process write it to its file, and there alone: every call is too much to read."""
    log.addHandler(AuditFile(url))
    log.propagate = False


class AuditFile(RotatingFileHandler):
    """Keeps it as lines of JSON, for the owner alone; the newest hundred megabytes."""

    def __init__(self, url: str) -> None:
        path = audit_path(url)
        try:
            private(path.parent)
            super().__init__(path, maxBytes=MOST_BYTES, backupCount=OLDER, encoding="utf-8")
        except OSError as error:
            raise InvalidInput("audit", f"{path} cannot be written: {error.strerror}") from error

    def _open(self) -> TextIOWrapper:
        """Also for the file that begins where one was full."""
        return open(self.baseFilename, "a", encoding="utf-8", opener=_open_private)

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"at": at, **vars(record).get("audit", {})})


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
