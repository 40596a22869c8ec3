"""The code of the pages that show how to reach a goal, as a reader would run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.bus.envelope import read_envelope
from holdfast.definition.workflow_file import read_workflow_text
from tests import servers

PAGES = Path(__file__).parents[3] / "docs" / "how-to"
SAID = re.compile(r"print\(.*\) +# (.*)$", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("hooks.md", "Hook(name='refund'"),
        ("commands.md", "['builder-1']"),
        ("planning.md", "did a logout button"),
    ],
)
def test_the_code_of_a_page_runs_from_its_top_to_its_end(
    page: str, shown: str, tmp_path: Path
) -> None:
    assert shown in run_page(page, tmp_path)


def test_the_page_about_buses_runs_beside_a_redis(tmp_path: Path) -> None:
    with servers.redis_server() as url:
        assert "monitoring {'open': 3}" in run_page("buses.md", tmp_path, REDIS_URL=url)


def run_page(page: str, folder: Path, **environment: str) -> str:
    """What the code of a page prints, in a process of its own; it prints what it says it will."""
    code = "\n".join(CODE.findall((PAGES / page).read_text(encoding="utf-8")))
    program = folder / "page.py"
    program.write_text(code, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = SAID.findall(code)
    assert [line for line in ran.stdout.splitlines() if line in said] == said
    return ran.stdout


def test_the_workflow_of_the_page_about_commands_can_be_read() -> None:
    page = (PAGES / "commands.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    workflow = read_workflow_text(text)
    works = [step.work for step in workflow.steps if step.work is not None]
    assert [work.command is not None for work in works] == [True, True, False]


def test_the_message_of_the_page_about_buses_is_one() -> None:
    page = (PAGES / "buses.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert [read_envelope(each).type for each in texts] == ["run.start"]
