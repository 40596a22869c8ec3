"""Worker processes on one store, which drain together what is there when they begin."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

# A drain that has brought nothing for so many seconds will not end.
PATIENCE = 60.0
PIPE_SIZE = 65_536


def drain_together(url: str, prefix: str, count: int, *, processes: int) -> float:
    """The seconds in which so many worker processes end `count` tasks (`t_`) or runs (`r_`).

    Every process is started and has opened the store before the time begins.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker_process(url, prefix)) for _ in range(processes)]
        begin = time.perf_counter()
        for stdin, _ in workers:
            stdin.write(b"go\n")
            stdin.flush()
        _await_ends([stdout for _, stdout in workers], count)
        return time.perf_counter() - begin


@contextmanager
def _worker_process(url: str, prefix: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The input and the output of a worker process that is ready to begin."""
    command = [sys.executable, "-m", "benchmarks.worker_process", url, prefix]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.stdin, process.stdout
        process.communicate()
    assert process.returncode == 0, f"a worker process ended with {process.returncode}"


def _await_ends(outputs: list[IO[bytes]], count: int) -> None:
    ended = 0
    with selectors.DefaultSelector() as selector:
        for output in outputs:
            selector.register(output, selectors.EVENT_READ)
        while ended < count:
            ready = selector.select(PATIENCE)
            assert ready, f"{ended} of {count} ended, and nothing more for {PATIENCE:g} s"
            for key, _ in ready:
                # A pipe holds no more than this, and each line was written to it as a whole.
                lines = os.read(key.fd, PIPE_SIZE)
                assert lines, "a worker process ended too early"
                ended += sum(map(int, lines.split()))
    assert ended == count, f"{ended} ended instead of {count}"
