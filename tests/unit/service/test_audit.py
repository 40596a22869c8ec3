"""The file of the audit: for its owner alone, however often a new one is begun."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.service.audit import UNSEEN, AuditFile, audit_path


def test_every_file_of_the_audit_is_for_its_owner_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    before = os.umask(0o022)
    try:
        kept = AuditFile(url)
        kept.maxBytes = 200
        for _ in range(3):
            kept.keep({"actor": "a" * 80})
        kept.close()
    finally:
        os.umask(before)
    files = [*audit_path(url).parent.glob("audit.log*")]
    assert len(files) == 3
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_lines_of_other_servers_count_for_how_long_a_file_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    mine, other = AuditFile(url), AuditFile(url)
    mine.maxBytes = 2 * UNSEEN
    line = {"about": "a" * 1_000}
    mine.keep(line)
    for _ in range(2 * UNSEEN // 1_000):
        other.keep(line)
    for _ in range(UNSEEN // 1_000 + 1):
        mine.keep(line)
    mine.close()
    other.close()
    assert (audit_path(url).with_name("audit.log.1")).exists()


def test_a_line_that_cannot_be_written_is_told_of_and_disturbs_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = AuditFile(f"sqlite:///{tmp_path}/.holdfast/holdfast.db")
    assert kept.stream is not None
    kept.stream.close()
    kept.keep({"actor": "somebody"})
    assert "closed file" in capsys.readouterr().err
    kept.stream = None
    kept.keep({"actor": "somebody else"})
    kept.close()
    assert "somebody else" in Path(kept.baseFilename).read_text()
