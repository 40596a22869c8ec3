"""How much is claimed ahead, by what has ended in the last moment."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.worker.pool.claims_ahead import (
    AFTER_COMMAND,
    AHEAD_SECONDS,
    MOMENT_SECONDS,
    MOST_AHEAD,
    SHORT_SECONDS,
    ClaimsAhead,
)


class Ends:
    """Steps that end at one instant after they have run for as long as a test says."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ahead = ClaimsAhead(self.clock)

    def end(self, count: int, seconds: float) -> int:
        self.clock.advance(1.01 * MOMENT_SECONDS)
        for _ in range(count):
            self.ahead.note_end(self.clock.monotonic() - seconds)
        return self.ahead.count()


def test_nothing_is_claimed_ahead_while_nothing_is_known() -> None:
    assert Ends().ahead.count() == 0
    assert Ends().end(0, 0) == 0


def test_a_worker_claims_ahead_what_it_does_in_a_moment_and_no_more_than_a_bound() -> None:
    ends = Ends()
    expected = pytest.approx(100 * AHEAD_SECONDS / MOMENT_SECONDS, rel=0.02)
    assert ends.end(100, 0.0001) == expected
    # Within the same moment nothing is measured again.
    assert ends.ahead.count() == expected
    assert ends.end(100_000, 0.0001) == MOST_AHEAD


def test_nothing_is_claimed_ahead_of_long_steps() -> None:
    ends = Ends()
    assert ends.end(100, SHORT_SECONDS * 0.9) > 0
    assert ends.end(100, SHORT_SECONDS * 1.1) == 0
    assert ends.end(100, SHORT_SECONDS * 0.9) > 0


def test_nothing_is_claimed_ahead_when_nothing_has_ended_for_a_moment() -> None:
    ends = Ends()
    assert ends.end(100, 0.0001) > 0
    assert ends.end(0, 0) == 0


def test_nothing_is_claimed_ahead_for_a_while_after_a_command() -> None:
    ends = Ends()
    ends.ahead.note_command()
    assert ends.end(100, 0.0001) == 0
    ends.clock.advance(AFTER_COMMAND)
    assert ends.ahead.count() == 0
    assert ends.end(100_000, 0.0001) == MOST_AHEAD
