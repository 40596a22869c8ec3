"""Clock: the port for time, the clock of the system, and a clock that tests move by hand."""

from __future__ import annotations

import sys
import threading
import time
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    @property
    def manual(self) -> bool:
        """Whether the time must be passed to the database before each statement."""

    def now(self) -> int:
        """Microseconds since the epoch, by the wall clock."""

    def monotonic(self) -> float:
        """Seconds that never go back and go on while the machine is suspended."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    manual = False

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        # CLOCK_MONOTONIC stands still during suspend on Linux but not on macOS.
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        if sys.platform == "darwin":
            return time.clock_gettime(time.CLOCK_MONOTONIC)
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only by `advance`, `set` and `sleep`."""

    manual = True

    def __init__(self, now: int = 1_750_000_000 * MICROSECONDS) -> None:
        self._lock = threading.Lock()
        self._now = now
        self._elapsed = 0

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed / MICROSECONDS

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(
                f"a clock is not advanced by {seconds} seconds; use set() to move it back"
            )
        step = round(seconds * MICROSECONDS)
        with self._lock:
            self._now += step
            self._elapsed += step

    def set(self, now: int) -> None:
        """Move the wall clock alone, as an administrator or a time server would."""
        with self._lock:
            self._now = now
