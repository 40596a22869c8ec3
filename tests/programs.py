"""Programs of their own process, ended with the test that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Where `tests` is: a program may want something of it.
ROOT = Path(__file__).parents[1]
# Whoever starts the tests in the background may have them ignore Ctrl-C, and so would a child.
_HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


@contextmanager
def running(text: str, url: str, folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program, written to a folder, on a store; talk with it over its pipes."""
    program = folder / "program.py"
    program.write_text(_HEARS + text)
    with subprocess.Popen(
        [sys.executable, str(program), url, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
    ) as child:
        try:
            yield child
        finally:
            child.kill()
