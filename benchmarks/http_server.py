"""A real server in a process of its own, and what that process uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Server:
    url: str
    token: str
    process: int
    # How many seconds to look at what goes on in it.
    patience: float

    @property
    def seconds(self) -> float:
        """The processor time that it has used."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def mebibytes(self) -> float:
        """The memory that it has in use."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def serving(
    store: str, patience: float = 5.0, *, program: Sequence[str] = ("holdfast",)
) -> Iterator[Server]:
    """Serve a store; `program` is the module that is run, with its first arguments."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-home-") as home:
        environment = {**os.environ, "HOLDFAST_HOME": home, "HOLDFAST_DB": store}
        command = [sys.executable, "-m", *program, "serve", "--port", "0", "--rate", "0"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            token = (Path(home) / "token").read_text().strip()
            try:
                yield Server(url=url, token=token, process=process.pid, patience=patience)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)
