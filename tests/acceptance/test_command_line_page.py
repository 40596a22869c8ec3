"""The page about the command line: its commands, typed from its top to its end."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.acceptance.terminals import ROOT, on_path

PAGE = ROOT / "docs" / "how-to" / "command-line.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXITS = re.compile(r" +# exits (\d)$")


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    lines = [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]
    script = ["set -u"]
    for line in lines:
        exits = EXITS.search(line)
        script.append(EXITS.sub("", line))
        wanted = exits[1] if exits else "0"
        script.append(
            f'[ $? = {wanted} ] || {{ echo "exited $?: {line.split("#")[0]!r}"; exit 9; }}'
        )
    (tmp_path / "page.sh").write_text("\n".join(script))
    (tmp_path / "shop.py").write_text((ROOT / "examples" / "shop.py").read_text())
    shown = subprocess.run(
        ["/bin/sh", "page.sh"],
        cwd=tmp_path,
        env=on_path(tmp_path),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "may still act" in shown.stdout
    assert "Good morning, Ada" in shown.stdout
    assert "before-the-upgrade.db holds the whole store" in shown.stdout
