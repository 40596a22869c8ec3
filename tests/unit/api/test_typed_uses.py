"""Type checkers report each wrong use of the Python API, and no right one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typed_uses"
ROOT = Path(__file__).parents[3]
FILES = [FOLDER / name for name in ("right_uses.py", "wrong_uses.py")]
Places = dict[str, dict[int, str]]


@pytest.fixture(scope="module")
def wrong_lines() -> Places:
    """The lines that say of themselves that they are wrong."""
    return {
        file.name: {
            number: line
            for number, line in enumerate(file.read_text().splitlines(), 1)
            if line.endswith("# wrong")
        }
        for file in FILES
    }


def ask_mypy() -> list[tuple[str, int, str]]:
    # Configured as for the whole project, so that they share what is known of its modules.
    asked = [sys.executable, "-m", "mypy", "--no-error-summary", "--output=json", *map(str, FILES)]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not said.stderr
    found = [json.loads(line) for line in said.stdout.splitlines()]
    return [
        (Path(each["file"]).name, each["line"], each["message"])
        for each in found
        if each["severity"] == "error"
    ]


def ask_pyright() -> list[tuple[str, int, str]]:
    asked = [sys.executable, "-m", "basedpyright", "--outputjson", "--level=error"]
    asked += ["--pythonpath", sys.executable, "--project", str(FOLDER)]
    said = subprocess.run(asked, cwd=FOLDER, capture_output=True, text=True, check=False)
    return [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in json.loads(said.stdout)["generalDiagnostics"]
    ]


@pytest.mark.parametrize("ask", [ask_mypy, ask_pyright])
def test_each_wrong_line_is_reported_and_no_right_one(ask: object, wrong_lines: Places) -> None:
    assert callable(ask)
    reported: Places = {file.name: {} for file in FILES}
    for name, line, message in ask():
        reported[name][line] = message
    assert {
        name: {line: said for line, said in lines.items() if line not in wrong_lines[name]}
        for name, lines in reported.items()
    } == {file.name: {} for file in FILES}
    assert {
        name: {line: said for line, said in lines.items() if line not in reported[name]}
        for name, lines in wrong_lines.items()
    } == {file.name: {} for file in FILES}
