"""The page about loops and its example, as a reader runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The code says in a comment what it prints.
PRINTS = re.compile(r"^ *print\(.*?\) +# (.+)$", re.MULTILINE)


def run(program: Path, folder: Path) -> str:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    shown = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return shown.stdout


def test_the_page_prints_what_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/loops.md").read_text(encoding="utf-8")
    text = "\n\n".join(BLOCK.findall(page))
    program = tmp_path / "page.py"
    program.write_text(text, encoding="utf-8")
    said = PRINTS.findall(text)
    assert len(said) == 6
    assert run(program, tmp_path).splitlines() == said


def test_the_example_sends_one_story_back_and_merges_both(tmp_path: Path) -> None:
    shown = run(ROOT / "examples/stories.py", tmp_path)
    assert "reject     reset a password: the mail" in shown
    assert "accept     reset a password: the form" in shown
    assert shown.count("implement") == 3
    assert "approve    Merge it? yes" in shown
    merged = ["reset a password: the form", "reset a password: the mail with a link"]
    assert f"result     {merged}" in shown
    assert "story 1 was sent back 1 time, story 0 never" in shown
    assert "no violations" in shown
