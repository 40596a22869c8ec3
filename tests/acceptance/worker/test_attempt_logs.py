"""Logs of attempts: written as they come, with their middle left out, and memory flat."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.worker.files.attempt_log import KEPT_AT_THE_END, AttemptLog
from holdfast.worker.files.state_paths import StatePath

MOST = 1_000_000
WRITES = 256 * 1024 * 1024

# It measures itself: how much more memory than after a first short command it ever had.
MEASURE = f"""
import resource, sys
from pathlib import Path
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.files.attempt_log import AttemptLog
from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.steps.transcript import Transcript
from tests.acceptance.worker.watched_attempt import Watched, run

class Writes(Watched):
    def on_output(self, data, *, error):
        transcript.on_output(data, error=error)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

redaction = Redaction({{"KEY": "correct-horse"}})
with AttemptLog(StatePath(Path(sys.argv[1])) / "long.log", {MOST}) as log:
    transcript = Transcript(log, lambda: redaction, 1024 * 1024)
    run("head", "-c", "4M", "/dev/zero", watched=Writes())
    before = peak()
    ended, _ = run("head", "-c", "{WRITES}", "/dev/zero", watched=Writes())
    assert ended.code == 0
    transcript.end()
    log.write(b"the end")
print(peak() - before)
"""


def test_a_log_that_fits_is_whole_and_only_its_owners(tmp_path: Path) -> None:
    place = StatePath(tmp_path) / "logs" / "t_1" / "1.log"
    with AttemptLog(place) as log:
        log.write(b"one\n\xff\x00")
    with AttemptLog(place) as log:
        log.write(b"two\n")
    path = place.path
    assert path.read_bytes() == b"one\n\xff\x00two\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_log_that_does_not_fit_keeps_both_ends_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    text = b"".join(b"%07d\n" % number for number in range(200_000))
    with AttemptLog(StatePath(tmp_path) / path.name, MOST) as log:
        for start in range(0, len(text), 9_999):
            log.write(text[start : start + 9_999])
    kept = path.read_bytes()
    first = MOST - KEPT_AT_THE_END
    missing = len(text) - MOST
    marker = b"\n[holdfast: %d bytes were left out here]\n" % missing
    assert kept == text[:first] + marker + text[-KEPT_AT_THE_END:]


def test_memory_stays_flat_however_much_a_command_writes(tmp_path: Path) -> None:
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    grown = int(measured.stdout) * (1 if sys.platform == "linux" else 1 / 1024)
    assert grown < 8 * 1024, f"{grown} kB"
    kept = (tmp_path / "long.log").read_bytes()
    assert len(kept) < MOST + 100
    assert kept.endswith(b"the end")


def test_a_log_that_cannot_be_written_is_told_and_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").write_text("a file")
    with AttemptLog(StatePath(tmp_path) / "logs" / "1.log") as log:
        log.write(b"lost")
    assert "is not written any further" in caplog.text
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with AttemptLog(StatePath(tmp_path) / "full.log") as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            log.write(b"lost")
            log.write(b"too")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caplog.text.count("full.log") == 1
