"""The pages about the command line: their commands, typed from the top of each to its end."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.acceptance.terminals import ROOT, on_path

PAGES = ROOT / "docs" / "how-to"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXITS = re.compile(r" +# exits (\d)$")


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text((ROOT / "examples" / "shop.py").read_text())
    shown = type_page("command-line.md", tmp_path)
    assert "may still act" in shown
    assert "Good morning, Ada" in shown
    assert "before-the-upgrade.db holds the whole store" in shown


def test_a_plan_is_made_run_mended_and_made_anew_as_its_page_says(tmp_path: Path) -> None:
    shown = type_page("plan-from-a-terminal.md", tmp_path)
    ids = re.compile(r"t_[0-9a-z]+ ?")
    lines = [ids.sub("", line).strip() for line in shown.splitlines()]
    planned = lines.index("Accounts · planning")
    assert lines[planned + 2 : planned + 5] == [
        "Login form · idle",
        "Reset by mail · idle",
        "Logout · idle",
    ]
    assert "Accounts is in progress 0/3" in lines
    failed = lines.index("Accounts is failed: which address?")
    back = ["Reset by mail is ready", "Accounts goes on too", "Accounts is cancelled"]
    after = [line for line in lines[failed:] if line in {*back, "Accounts is planning"}]
    assert after == [*back, "Accounts is planning"]
    assert lines.count("Accounts is in progress 0/3") == 2
    states = {"Login form": "ready", "Reset by mail": "blocked", "Logout": "blocked"}
    again = "\n".join(lines[lines.index("Accounts is planning") :])
    for title, state in states.items():
        assert re.search(rf"{title} +{state} +developer", again)
    assert lines[-2:] == ["Send a code of six digits.", "Check the code that was sent."]


def type_page(page: str, folder: Path) -> str:
    """What the commands of a page print, each of which exits as it says."""
    text = (PAGES / page).read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    script = ["set -u"]
    for line in lines:
        exits = EXITS.search(line)
        script.append(EXITS.sub("", line))
        wanted = exits[1] if exits else "0"
        script.append(
            f'[ $? = {wanted} ] || {{ echo "exited $?: {line.split("#")[0]!r}"; exit 9; }}'
        )
    (folder / "page.sh").write_text("\n".join(script))
    shown = subprocess.run(
        ["/bin/sh", "page.sh"],
        cwd=folder,
        env=on_path(folder),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return shown.stdout
