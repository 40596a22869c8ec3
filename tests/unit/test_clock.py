"""The clocks: one that runs by itself, one that is moved by hand."""

from __future__ import annotations

import time

import pytest

from holdfast.clock import ManualClock, SystemClock


def test_the_system_clock_gives_microseconds_since_the_epoch() -> None:
    before = time.time_ns() // 1000
    now = SystemClock().now()
    assert before <= now <= time.time_ns() // 1000


def test_the_system_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


def test_the_system_clock_sleeps_at_least_as_long_as_asked() -> None:
    clock = SystemClock()
    start = clock.monotonic()
    clock.sleep(0.01)
    assert clock.monotonic() - start >= 0.01


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(1_000)
    assert (clock.now(), clock.monotonic()) == (1_000, 0.0)
    clock.advance(1.5)
    assert (clock.now(), clock.monotonic()) == (1_501_000, 1.5)


def test_a_sleep_on_a_manual_clock_moves_it() -> None:
    clock = ManualClock(0)
    clock.sleep(2)
    assert clock.now() == 2_000_000


def test_setting_the_wall_clock_back_leaves_the_monotonic_one_alone() -> None:
    clock = ManualClock(5_000_000)
    clock.advance(1)
    clock.set(7)
    assert (clock.now(), clock.monotonic()) == (7, 1.0)


def test_a_manual_clock_is_not_advanced_backwards() -> None:
    with pytest.raises(ValueError, match="set"):
        ManualClock().advance(-1)


def test_only_a_manual_clock_has_to_be_told_to_the_database() -> None:
    assert ManualClock().manual
    assert not SystemClock().manual
