"""Claims ahead (ADR 37, 1.9 to 2.1 times as fast; apart from the worker, which is long enough).

A worker claims short tasks before they can begin, so that they share commits.
"""

from __future__ import annotations

from holdfast.clock import Clock

# The most tasks that wait in a worker for their turn.
MOST_AHEAD = 480
# A worker claims ahead what it would do in so many seconds at the speed of the last moment.
AHEAD_SECONDS = 0.05
MOMENT_SECONDS = 0.02
# Nothing is claimed ahead of steps that take longer than this.
SHORT_SECONDS = 0.02
# A step that was claimed so many seconds ago, and whose turn has not come, is given back.
LONGEST_WAIT = 0.3
# After a command, nothing is claimed ahead for so many seconds: commands take long.
AFTER_COMMAND = 60.0


class ClaimsAhead:
    """The speed of a worker, by the steps that have ended in the last moment.

    While nothing is known of it, or nothing ends, nothing is claimed ahead.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._none_before = self._since
        self._ended = 0
        self._seconds = 0.0
        self._ahead = 0

    def note_end(self, began_at: float) -> None:
        """Note that a step has ended."""
        self._ended += 1
        self._seconds += self._clock.monotonic() - began_at

    def note_command(self) -> None:
        """Note that a command was claimed."""
        self._none_before = self._clock.monotonic() + AFTER_COMMAND

    def count(self) -> int:
        """How many tasks to claim ahead now."""
        now = self._clock.monotonic()
        measured = now - self._since
        if measured >= MOMENT_SECONDS:
            short = self._seconds <= SHORT_SECONDS * self._ended
            expected = int(self._ended * AHEAD_SECONDS / measured) if short else 0
            self._ahead = min(MOST_AHEAD, expected)
            self._since, self._ended, self._seconds = now, 0, 0.0
        return 0 if now < self._none_before else self._ahead
