"""Claims ahead: how many tasks a worker claims before they can begin, so that they share commits.

A worker that claims 500 tasks in place of 32 does no-op tasks twice as fast (ADR 37).
"""

from __future__ import annotations

from holdfast.clock import Clock

# The most tasks that wait in a worker for their turn.
MOST_AHEAD = 480
# For so many seconds of its present speed a worker claims ahead, and this long is measured.
AHEAD_SECONDS = 0.05
MEASURED_SECONDS = 0.02
# Nothing is claimed ahead of steps that take longer than this.
SHORT_SECONDS = 0.02
# A step that was claimed so many seconds ago and cannot begin is given back.
LONGEST_WAIT = 0.3


class ClaimsAhead:
    """The speed of a worker, by the steps that have ended in the last moment.

    While nothing is known of it, or nothing ends, nothing is claimed ahead.
    """

    def __init__(self, clock: Clock, most: int = MOST_AHEAD) -> None:
        self._clock = clock
        self._most = most
        self._since = clock.monotonic()
        self._ended = 0
        self._seconds = 0.0
        self._ahead = 0

    def note_end(self, began_at: float) -> None:
        """Note that a step has ended."""
        self._ended += 1
        self._seconds += self._clock.monotonic() - began_at

    def count(self) -> int:
        """How many tasks to claim ahead now."""
        now = self._clock.monotonic()
        measured = now - self._since
        if measured >= MEASURED_SECONDS:
            short = self._seconds <= SHORT_SECONDS * self._ended
            expected = int(self._ended * AHEAD_SECONDS / measured) if short else 0
            self._ahead = min(self._most, expected)
            self._since, self._ended, self._seconds = now, 0, 0.0
        return self._ahead
