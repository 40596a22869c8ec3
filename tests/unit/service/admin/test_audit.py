"""The file of the audit: for its owner alone, however often a new one is begun."""

from __future__ import annotations

import json
import os
import shutil
import stat
from fcntl import LOCK_EX
from pathlib import Path

import pytest

from holdfast.service.admin import audit
from holdfast.service.admin.audit import OLD_FILES, UNCHECKED_BYTES, AuditFile, audit_path


def test_every_file_of_the_audit_is_for_its_owner_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    before = os.umask(0o022)
    try:
        kept = AuditFile(url)
        kept.maxBytes = 200
        for _ in range(3):
            kept.write_entry({"actor": "a" * 80})
        kept.close()
    finally:
        os.umask(before)
    files = [*audit_path(url).parent.glob("audit.log*")]
    assert len(files) == 3
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_lines_of_other_servers_count_for_how_long_a_file_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    mine, other = AuditFile(url), AuditFile(url)
    mine.maxBytes = 2 * UNCHECKED_BYTES
    line = {"about": "a" * 1_000}
    mine.write_entry(line)
    for _ in range(2 * UNCHECKED_BYTES // 1_000):
        other.write_entry(line)
    for _ in range(UNCHECKED_BYTES // 1_000 + 1):
        mine.write_entry(line)
    mine.close()
    other.close()
    assert (audit_path(url).with_name("audit.log.1")).exists()


def _kept(url: str) -> list[str]:
    """What the lines of all files are about, oldest first."""
    files = sorted(audit_path(url).parent.glob("audit.log*"), key=lambda each: each.name)[::-1]
    return [json.loads(line)["about"] for each in files for line in each.read_text().splitlines()]


def test_servers_that_share_an_audit_lose_no_line_that_there_is_room_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    files = [AuditFile(url) for _ in range(4)]
    about = [f"{number:0100}" for number in range(45)]
    for number, each in enumerate(about):
        # One says much, and now and then one of the others something.
        writer = files[0] if number % 10 else files[1 + number // 10 % 3]
        writer.maxBytes = 900
        writer.write_entry({"about": each})
    for file in files:
        file.close()
    assert sorted(_kept(url)) == about


def test_a_server_that_was_quiet_writes_to_the_newest_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    monkeypatch.setattr(audit, "CHECK_INTERVAL", 0.0)
    quiet, busy = AuditFile(url), AuditFile(url)
    quiet.write_entry({"about": "first"})
    for _ in range(OLD_FILES + 1):
        busy.write_entry({"about": "much"})
        busy.doRollover()
    quiet.write_entry({"about": "last"})
    quiet.close()
    busy.close()
    assert _kept(url)[-1] == "last"


def test_a_writer_that_waited_until_another_had_begun_a_new_file_goes_on_in_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    mine, other = AuditFile(url), AuditFile(url)
    mine.maxBytes = 200
    mine.write_entry({"about": "a" * 100})
    waited = list[int]()

    def wait(_: int, how: int) -> None:
        waited.append(how)
        other.doRollover()

    monkeypatch.setattr(audit, "flock", wait)
    mine.write_entry({"about": "b" * 100})
    mine.close()
    other.close()
    assert waited == [LOCK_EX]
    assert _kept(url) == ["a" * 100, "b" * 100]
    assert len([*tmp_path.glob(".holdfast/audit.log*")]) == 2


def test_a_line_that_cannot_be_written_is_told_of_and_disturbs_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = AuditFile(f"sqlite:///{tmp_path}/.holdfast/holdfast.db")
    assert kept.stream is not None
    kept.stream.close()
    kept.write_entry({"actor": "somebody"})
    kept.write_entry({"actor": "somebody"})
    assert caplog.text.count("is not written any further: I/O operation on closed file") == 1
    kept.stream = None
    kept.write_entry({"actor": "somebody else"})
    kept.close()
    assert "somebody else" in Path(kept.baseFilename).read_text()


def test_an_audit_whose_folder_was_removed_goes_on_in_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "CHECK_INTERVAL", 0.0)
    url = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    kept = AuditFile(url)
    kept.write_entry({"about": "before"})
    shutil.rmtree(audit_path(url).parent)
    for about in ("after", "later"):
        kept.write_entry({"about": about})
    kept.close()
    assert _kept(url) == ["after", "later"]
