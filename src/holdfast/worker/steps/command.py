"""Commands: the records of a command before it runs, while it runs, and when it has ended."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

GRACE = 1.0
OVER, TIMEOUT, IDLE, SIGNALLED = "over", "timeout", "idle", "signalled"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command as a list of arguments, never as a line for a shell."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path | None = None
    stdin: bytes = b""
    # Descriptors that the command keeps open.
    files: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommandLimits:
    """How long a command may run, be silent, and take to end once it is told to."""

    timeout: float | None = None
    idle_timeout: float | None = None
    grace: float = GRACE


class CommandWatch(Protocol):
    """The attempt of a running command, as `Process` sees it."""

    def is_over(self) -> bool:
        """Whether the attempt has ended: cancelled, lost, or its worker stops."""

    def deadline(self) -> float | None:
        """The end of the lease, on a clock that counts suspend."""

    def on_interrupt(self, wake: Callable[[], object] | None) -> None:
        """Have `wake` called, from any thread, as soon as the attempt is over; None ends that."""

    def on_begin(self, keeper_id: int, command_id: int, started: str) -> None: ...

    def on_output(self, data: bytes, *, error: bool) -> None:
        """Take what the command wrote to its standard output or error."""


@dataclass(frozen=True, kw_only=True)
class CommandEnd:
    """How a command ended: its exit code, or minus the signal; `stopped` says why it had to.

    `processes_ended` counts the processes told to end, `processes_left` those that live on.
    """

    code: int | None
    stop_reason: str | None = None
    processes_ended: int = 0
    processes_left: int = 0
    abandoned: bool = False


def describe_exit(code: int | None) -> str:
    if code is None:
        return "its keeper was killed"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


class CannotStart(Exception):
    """The command could not be run at all."""
