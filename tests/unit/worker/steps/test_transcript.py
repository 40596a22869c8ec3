"""What is kept of a command's output on its way: no secret, whenever it became one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.worker.files.attempt_log import AttemptLog
from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.secrets.secrets import Secrets
from holdfast.worker.steps.transcript import Transcript

SECRET = "correct-horse-battery"
TOKEN = "0123456789"


@pytest.mark.parametrize("inside", [b"\x1b[1m", b"\x08", b"\x00"])
def test_a_secret_that_is_whole_once_its_colours_are_gone_is_taken_out_then(
    tmp_path: Path, inside: bytes
) -> None:
    secrets = Secrets("sqlite:///x", {"KEY": SECRET})
    secrets.get("KEY")
    with AttemptLog(StatePath(tmp_path) / "log") as spool:
        transcript = Transcript(spool, secrets.make_redaction_with({}), 1_000)
        transcript.on_output(b"x correct-horse" + inside + b"-battery y\n", error=True)
        transcript.end()
    assert transcript.last_line == "x [secret KEY] y"
    assert transcript.error_text == "x [secret KEY] y"


def test_a_value_that_becomes_a_secret_while_a_command_runs_is_one_from_then_on(
    tmp_path: Path,
) -> None:
    secrets = Secrets("sqlite:///x", {"KEY": SECRET})
    with AttemptLog(StatePath(tmp_path) / "log") as spool:
        transcript = Transcript(spool, secrets.make_redaction_with({"TOKEN": TOKEN}), 1_000)
        transcript.on_output(f"{TOKEN}\n".encode(), error=False)
        secrets.get("KEY")
        transcript.on_output(f"{SECRET} {TOKEN}\n".encode(), error=False)
        transcript.end()
    assert (tmp_path / "log").read_text() == "[secret TOKEN]\n[secret KEY] [secret TOKEN]\n"
