"""The first pipeline, written, run and killed as its page says, block by block."""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "tutorial" / "first-pipeline.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The page sleeps for half a minute, and has leases as long; a test waits for a word instead.
SLEEP = "    import pathlib, time\n    while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
SHORT = '"sqlite:///shop.db", lease="1s", renewal="300ms"'


@contextmanager
def worker() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "shop.py"]) as process:
        try:
            yield process
        finally:
            process.kill()


def paste(block: str, names: dict[str, Any]) -> None:
    """Type the lines of a block one after another, and see what the page says."""
    text = re.sub(r"'worker-laptop-\d+'", "'...'", block)
    test = doctest.DocTestParser().get_doctest(text, names, PAGE.name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    result = runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert result.attempted
    assert result.failed == 0


def test_the_pipeline_of_the_page_runs_is_killed_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, run_it, kill_it, look = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert "time.sleep(30)` before the `return` of `charge`" in PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    program = Path("shop.py")
    program.write_text(shop.replace('"sqlite:///shop.db"', SHORT), encoding="utf-8")
    names: dict[str, Any] = {}
    with worker():
        paste(run_it, names)
    slow = program.read_text(encoding="utf-8").replace(
        '    return f"payment', f'{SLEEP}    return f"payment'
    )
    program.write_text(slow, encoding="utf-8")
    with worker() as first:
        paste(kill_it, names)
        owner = names["hf"].tasks.get(names["charge"].id).lease.owner
        (living,) = names["hf"].workers.list()
        assert owner == living.name
        os.kill(first.pid, signal.SIGKILL)
    Path("go").touch()
    with worker():
        paste(look, names)
    names["hf"].close()
    monkeypatch.delitem(sys.modules, "shop")
