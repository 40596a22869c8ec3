"""The first workflow, written, run, stopped, taken up and mended as its page says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from pathlib import Path

from tests.acceptance.terminals import ROOT, holdfast, terminal

PAGE = (ROOT / "docs" / "tutorial" / "first-workflow.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```(?:yaml|sh)\n# (\S+\.\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```sh\n((?:holdfast|mv) .*?)^```$", re.DOTALL | re.MULTILINE)
EXITS = re.compile(r" +# (press Ctrl-C: )?exits (\d+)$")
# The page waits for five seconds; a test waits for a word instead.
WAIT = "until [ -e go ]; do sleep 0.05; done"


def interrupt(folder: Path, *arguments: str) -> tuple[int, str]:
    """Type a command, and press Ctrl-C while the first part is written."""
    with terminal(folder, *arguments) as screen:
        screen.until("└ thinking about: Write about tea: what is new")
        screen.child.send_signal(signal.SIGINT)
        screen.until("was left as it is")
        (folder / "go").touch()
        return screen.ends(), screen.text


def type_line(folder: Path, line: str) -> str:
    """Type one line of the page, and see that it exits as the page says."""
    expected = EXITS.search(line)
    program, *arguments = shlex.split(line, comments=True)
    if program == "mv":
        source, target = arguments
        shutil.move(folder / source, folder / target)
        return ""
    if expected and expected[1]:
        code, said = interrupt(folder, *arguments)
    else:
        ran = holdfast(folder, *arguments)
        code, said = ran.returncode, ran.stdout + ran.stderr
    assert code == (int(expected[2]) if expected else 0), f"{line}\n{said}"
    return said


def test_the_workflow_of_the_page_runs_is_stopped_and_goes_on(tmp_path: Path) -> None:
    for name, text in FILE.findall(PAGE):
        (tmp_path / name).write_text(text.replace("sleep 5", WAIT), encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"digest.yaml", "writer.sh"}
    lines = [line for block in BLOCK.findall(PAGE) for line in block.splitlines()]
    assert len(lines) == 18
    said = [type_line(tmp_path, line) for line in lines]
    left, why, again = said[2], said[5], said[6]
    assert "Come back: holdfast show r_" in left
    assert '(ready): 0 of 0 live workers serve "writer"' in why
    assert why.endswith("Fix:   holdfast worker --agent writer\n")
    assert len(re.findall(r"plan  running|write\.1\.draft  running", again)) == 2
    *_, ended, printed = again.splitlines()
    assert ended.endswith("digest  completed")
    assert json.loads(printed) == [{"text": "All is well."}] * 3
    assert "write.1.draft  failed  attempt 2" in said[12]
    assert said[-1].startswith("Since ")
    assert "1 cancelled, 2 completed" in said[-1]
