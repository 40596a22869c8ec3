"""Waits for the lock of a SQLite file: short where locks are rare, long in a crowd of writers."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from holdfast.clock import ManualClock
from holdfast.settings import Settings
from holdfast.store.database import DriverPorts, SqlDirectories
from holdfast.store.sqlite.lock_waits import (
    CROWD_PAUSE,
    CROWD_SECONDS,
    CROWD_WAITS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    WARN_AFTER,
    LockWaits,
)
from holdfast.threads import SystemThreads

PATIENCE = 5.0


class Even:
    """Neither shortens nor lengthens a pause."""

    def random(self) -> float:
        return 0.5

    def token_bytes(self, length: int, /) -> bytes:
        return bytes(length)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        settings = Settings(url="sqlite:///unused.db", patience=PATIENCE)
        ports = DriverPorts(
            clock=self.clock,
            randomness=Even(),
            threads=SystemThreads(),
            settings=settings,
            sql_directories=SqlDirectories(),
        )
        self.waits = LockWaits(ports, lambda seconds: f"locked for {seconds:.0f} s")

    def pauses(self, count: int) -> list[float]:
        """The first pauses of a new wait."""
        wait, times = self.waits.begin(), [self.clock.monotonic()]
        for _ in range(count):
            assert wait.pause()
            times.append(self.clock.monotonic())
        return [round(after - before, 6) for before, after in pairwise(times)]

    def make_crowd(self) -> None:
        for _ in range(CROWD_WAITS - 1):
            self.waits.begin()


@pytest.fixture
def world() -> World:
    return World()


def test_a_lock_that_is_met_now_and_then_is_tried_again_soon(world: World) -> None:
    assert world.pauses(5) == [FIRST_PAUSE, 0.001, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert not world.waits.crowded


def test_in_a_crowd_pauses_begin_long_and_who_has_waited_longest_asks_most_often(
    world: World,
) -> None:
    world.make_crowd()
    assert world.pauses(5) == [CROWD_PAUSE, 0.005, 0.0025, LONGEST_PAUSE, LONGEST_PAUSE]
    assert world.waits.crowded


def test_a_crowd_is_over_when_no_lock_was_met_for_a_while(world: World) -> None:
    world.make_crowd()
    world.waits.begin()
    world.clock.advance(CROWD_SECONDS)
    assert not world.waits.crowded
    assert world.pauses(1) == [FIRST_PAUSE]


def test_a_wait_ends_when_the_patience_is_used_up_and_is_logged_once_before(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    wait, began = world.waits.begin(), world.clock.monotonic()
    with caplog.at_level(logging.WARNING):
        while wait.pause():
            pass
    assert world.clock.monotonic() - began == pytest.approx(PATIENCE)
    assert caplog.messages == [f"locked for {WARN_AFTER:.0f} s"]
