"""An attempt for commands that are run without a store: it hears what they write."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from holdfast.clock import SystemClock
from holdfast.worker.steps.command import Command, Ended, Limits
from holdfast.worker.steps.keeper import start_of
from holdfast.worker.steps.process import Process

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

    def over(self) -> bool:
        return self.over_since is not None

    def deadline(self) -> float | None:
        return self._until

    def interrupted(self, wake: Callable[[], object] | None) -> None:
        self._wake = wake

    def began(self, keeper_id: int, command_id: int, started: str) -> None:
        self.keeper, self.command = keeper_id, command_id
        assert start_of(command_id) in {started, ""}

    def wrote(self, data: bytes, *, error: bool) -> None:
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
) -> tuple[Ended, Watched]:
    """Run a command to its end."""
    watch = watched or Watched()
    chosen = dict(os.environ) if environment is None else environment
    command = Command(arguments=arguments, environment=chosen, given=given)
    return Process(command, Limits(**limits), watch, CLOCK).run(), watch


def program(text: str) -> tuple[str, ...]:
    """A command that runs a Python program."""
    return sys.executable, "-I", "-S", "-c", text


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if start_of(pid)]
