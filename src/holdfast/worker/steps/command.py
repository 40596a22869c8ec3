"""What is known of a command before it runs, while it runs, and when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

GRACE = 1.0
OVER, TIMEOUT, IDLE, SIGNALLED = "over", "timeout", "idle", "signalled"


@dataclass(frozen=True, kw_only=True)
class Command:
    """An argument list, never a line for a shell; `given` is what it reads."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path | None = None
    stdin: bytes = b""


@dataclass(frozen=True, kw_only=True)
class CommandLimits:
    """How long it may run, how long it may be silent, and how long it has when told to end."""

    timeout: float | None = None
    idle_timeout: float | None = None
    grace: float = GRACE


class CommandWatch(Protocol):
    """What a command needs to know of its attempt, and whom it tells."""

    def is_over(self) -> bool:
        """Whether the attempt has ended: cancelled, lost, or its worker stops."""

    def deadline(self) -> float | None:
        """Until when the lease lasts, on a clock that counts suspend."""

    def on_interrupt(self, wake: Callable[[], object] | None) -> None:
        """Call `wake`, from any thread, as soon as the attempt is over; None for no more."""

    def on_begin(self, keeper_id: int, command_id: int, started: str) -> None: ...

    def on_output(self, data: bytes, *, error: bool) -> None:
        """It wrote something, to its standard error or its output."""


@dataclass(frozen=True, kw_only=True)
class CommandEnd:
    """How a command ended: its exit code, or minus the signal; `stopped` says why it had to.

    `ended` counts the processes that were told to end, `left` those that could not be.
    """

    code: int | None
    stop_reason: str | None = None
    ended: int = 0
    left: int = 0
    abandoned: bool = False


class CannotStart(Exception):
    """The command could not be run at all."""
