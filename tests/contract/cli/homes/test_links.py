"""No file of a home is reached through a symbolic link."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput
from holdfast.service.admin.audit import AuditFile
from holdfast.service.project.server_address import find_server
from holdfast.worker.steps.process_identity import ProcessIdentity
from tests.contract.cli.command_line import Typed


@pytest.mark.parametrize("name", ["token", "audit.log", "audit.lock", "server"])
def test_no_file_of_a_home_is_reached_through_a_symbolic_link(
    name: str, typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    victim = tmp_path / "victim"
    victim.write_text("hf_" + "k" * 40)
    path = tmp_path / "project" / ".holdfast" / name
    path.symlink_to(victim)
    url = f"sqlite:///{tmp_path}/project/.holdfast/holdfast.db"
    if name == "token":
        assert "reached through a symbolic link" in typed.refused(2, "token")
    elif name == "audit.log":
        with pytest.raises(InvalidInput, match=r"audit.log cannot be written: it is reached"):
            AuditFile(url)
    elif name == "audit.lock":
        kept = AuditFile(url)
        kept.maxBytes = 1
        kept.write_entry({"actor": "somebody"})
        kept.close()
    else:
        victim.write_text(json.dumps({"url": "http://h:1", "origin": str(ProcessIdentity.own())}))
        assert find_server(url) is None
    assert path.is_symlink()
    assert victim.read_text().startswith(("hf_", "{"))
    assert "somebody" not in victim.read_text()


def test_a_log_is_neither_written_nor_read_through_a_symbolic_link(
    typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    Path("say.yaml").write_text("name: say\nsteps:\n  - {id: say, run: [echo, hello]}\n")
    (tmp_path / "victim").mkdir()
    Path(".holdfast/logs").symlink_to(tmp_path / "victim")
    assert typed("run", "say.yaml", "--wait").code == 0
    assert list((tmp_path / "victim").iterdir()) == []
    assert "reached through a symbolic link" in typed("logs", "@last:say").err
