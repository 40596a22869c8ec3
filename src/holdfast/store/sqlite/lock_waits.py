"""Lock waits: how long a process pauses between tries to lock a SQLite file (ADR 42).

SQLite cannot wait in line for its lock, so whoever waits tries again after pauses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf

from holdfast.store.database import DriverPorts

logger = logging.getLogger("holdfast.store")

# The first pause and the longest, where locks are met now and then: most are held for about this.
FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.002
# In a crowd each try costs a processor that the holder could use, and each change of the holder
# costs the pages that both keep in memory. So pauses begin long, and the holder writes several
# groups meanwhile; they get shorter, so that whoever has waited longest asks most often.
CROWD_PAUSE = 0.01
# A process is in a crowd after so many waits, of which each began so soon after the one before.
CROWD_WAITS, CROWD_SECONDS = 4, 0.1
# After so many seconds a wait is logged.
WARN_AFTER = 2.0


class LockWaits:
    """The waits of one process for the lock of one file; `describe` gives who has it locked."""

    def __init__(self, ports: DriverPorts, describe: Callable[[float], str]) -> None:
        self.ports = ports
        self.describe = describe
        self._met = 0
        self._met_at = -inf

    @property
    def crowded(self) -> bool:
        """Whether this process has met the lock of others again and again just now."""
        return self._met >= CROWD_WAITS and self._is_recent()

    def begin(self) -> LockWait:
        self._met = self._met + 1 if self._is_recent() else 1
        self._met_at = self.ports.clock.monotonic()
        return LockWait(self)

    def _is_recent(self) -> bool:
        return self.ports.clock.monotonic() < self._met_at + CROWD_SECONDS


class LockWait:
    """The pauses of one wait: made when the lock is first met, and never used again."""

    def __init__(self, waits: LockWaits) -> None:
        self._waits = waits
        self._clock = waits.ports.clock
        self._began = self._clock.monotonic()
        self._crowded = waits.crowded
        self._next = CROWD_PAUSE if self._crowded else FIRST_PAUSE
        self._warned = False

    def pause(self) -> bool:
        """Sleep once; False, without sleeping, when the patience is used up."""
        ports, waited = self._waits.ports, self._clock.monotonic() - self._began
        left = ports.settings.patience - waited
        if left <= 0:
            return False
        if waited >= WARN_AFTER and not self._warned:
            self._warned = True
            logger.warning("%s", self._waits.describe(waited))
        self._clock.sleep(min(left, self._next * (0.5 + ports.randomness.random())))
        if self._crowded:
            self._next = max(self._next / 2, LONGEST_PAUSE)
        else:
            self._next = min(self._next * 2, LONGEST_PAUSE)
        return True
