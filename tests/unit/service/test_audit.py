"""The file of the audit: for its owner alone, however often a new one is begun."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from holdfast.service.audit import AuditFile, audit_path


def test_every_file_of_the_audit_is_for_its_owner_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    before = os.umask(0o022)
    try:
        kept = AuditFile(url)
        kept.maxBytes = 200
        record = logging.makeLogRecord({"audit": {"actor": "a" * 80}})
        for _ in range(3):
            kept.handle(record)
        kept.close()
    finally:
        os.umask(before)
    files = [*audit_path(url).parent.glob("audit.log*")]
    assert len(files) == 3
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
