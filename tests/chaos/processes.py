"""Starts processes for single errands, each forked from one that is prepared and has no store."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, cast

from tests.chaos.process_jobs import Replies
from tests.race.racers import PATIENCE

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.chaos.preloaded_modules"])


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended, and what it said before."""

    exit_code: int
    statements: tuple[str, ...]
    replies: tuple[object, ...]

    @property
    def killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL


def send(errand: Callable[..., None], *arguments: Any) -> Ended:
    """Run an errand in a process of its own, until it has ended or died."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=errand, args=(theirs, *arguments))
    with ours:
        with theirs:
            process.start()
        said = _listen(ours)
        process.join()
    exit_code = cast("int", process.exitcode)
    process.close()
    replies = [each.given for each in said if isinstance(each, Replies)]
    return Ended(
        exit_code=exit_code,
        statements=tuple(each for each in said if isinstance(each, str)),
        replies=replies[0] if replies else (),
    )


def _listen(ours: Connection) -> list[object]:
    said: list[object] = []
    while True:
        try:
            said.append(ours.recv())
        except EOFError:
            return said


@contextmanager
def start(target: Callable[..., None], *arguments: Any) -> Iterator[BaseProcess]:
    """A process that goes on by itself; at the end of the block it is interrupted, if it lives."""
    with start_alone(target, *arguments) as process:
        yield process
        interrupt(process)


@contextmanager
def start_alone(target: Callable[..., None], *arguments: Any) -> Iterator[BaseProcess]:
    """A process that nobody asks to end: it is killed at the end of the block, if it lives."""
    process = _CONTEXT.Process(target=target, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def interrupt(process: BaseProcess) -> None:
    """Ask a process to finish what it does and end, and wait until it has."""
    if process.is_alive():
        os.kill(cast("int", process.pid), signal.SIGINT)
        process.join(PATIENCE)
        assert process.exitcode == 0, f"interrupted, it ended with {process.exitcode}"
