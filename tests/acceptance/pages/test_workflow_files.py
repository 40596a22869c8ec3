"""The page about workflow files, as a reader runs it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.acceptance.pages.test_loops import BLOCK, PRINTS, ROOT, run

PAGE = (ROOT / "docs/how-to/workflow-files.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_says(tmp_path: Path) -> None:
    files = FILE.findall(PAGE)
    assert [name for name, _ in files] == ["feature.yaml", "release.yaml", "deploy.yaml"]
    for name, content in files:
        (tmp_path / name).write_text(content, encoding="utf-8")
    text = "\n\n".join(BLOCK.findall(PAGE))
    program = tmp_path / "page.py"
    program.write_text(text, encoding="utf-8")
    said = PRINTS.findall(text)
    assert len(said) == 8
    assert run(program, tmp_path).splitlines() == said
