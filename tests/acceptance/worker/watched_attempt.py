"""An attempt for commands that are run without a store: it hears what they write."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from holdfast.clock import SystemClock
from holdfast.worker.steps.command import Command, CommandEnd, CommandLimits
from holdfast.worker.steps.process import Process
from holdfast.worker.steps.process_keeper import find_start

CLOCK = SystemClock()


class Watched:
    """Is over as soon as the command has written a text."""

    def __init__(self, *, over_at: bytes | None = None, lease: float | None = None) -> None:
        self.out = b""
        self.err = b""
        self.keeper = self.command = 0
        self.over_since: float | None = None
        self._over_at = over_at
        self._until = None if lease is None else CLOCK.monotonic() + lease
        self._wake: Callable[[], object] | None = None

    def is_over(self) -> bool:
        return self.over_since is not None

    def deadline(self) -> float | None:
        return self._until

    def on_interrupt(self, wake: Callable[[], object] | None) -> None:
        self._wake = wake

    def on_begin(self, keeper_id: int, command_id: int, started: str) -> None:
        self.keeper, self.command = keeper_id, command_id
        assert find_start(command_id) in {started, ""}

    def on_output(self, data: bytes, *, error: bool) -> None:
        if error:
            self.err += data
        else:
            self.out += data
        if self._over_at is not None and self._over_at in self.out and self.over_since is None:
            self.over_since = CLOCK.monotonic()
            assert self._wake is not None
            self._wake()


def run(
    *arguments: str,
    watched: Watched | None = None,
    given: bytes = b"",
    environment: dict[str, str] | None = None,
    **limits: Any,
) -> tuple[CommandEnd, Watched]:
    """Run a command to its end."""
    watch = watched or Watched()
    chosen = dict(os.environ) if environment is None else environment
    command = Command(arguments=arguments, environment=chosen, stdin=given)
    return Process(command, CommandLimits(**limits), watch, CLOCK).run(), watch


def program(text: str) -> tuple[str, ...]:
    """A command that runs a Python program."""
    return sys.executable, "-I", "-S", "-c", text


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if find_start(pid)]
