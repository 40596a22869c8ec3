"""How much disk is free: looked at now and then, and told once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from holdfast.clock import ManualClock
from holdfast.worker.pool.disk import LOOK_EVERY, Disk, measure_free_disk


def test_a_disk_that_is_full_and_one_that_is_full_no_more_are_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    free, clock = [3], ManualClock()
    disk = Disk(clock, 2, lambda: free[0])
    told = []
    for now in (3, 1, 1, 2, 2):
        free[0] = now
        told.append(disk.check() is None)
        assert disk.check() is disk.low
        clock.advance(LOOK_EVERY)
    assert told == [True, False, False, True, True]
    assert [each.message for each in caplog.records] == [
        "1 B of disk are free, and it claims nothing below 2 B; what runs goes on",
        "there is enough disk again, and work is claimed",
    ]


def test_a_disk_is_looked_at_no_more_often_than_once_a_second() -> None:
    free, clock = [1], ManualClock()
    disk = Disk(clock, 2, lambda: free[0])
    assert disk.check()
    free[0] = 2
    clock.advance(LOOK_EVERY / 2)
    assert disk.check()
    clock.advance(LOOK_EVERY / 2)
    assert disk.check() is None


def test_a_disk_that_cannot_be_looked_at_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> int:
        raise OSError("gone")

    caplog.set_level(logging.WARNING)
    assert Disk(ManualClock(), 2, fail).check() is None
    assert "cannot be told: gone" in caplog.text
    assert Disk(ManualClock(), 0, fail).check() is None


def test_the_room_of_a_folder_that_is_still_to_be_made_is_that_of_the_one_above(
    tmp_path: Path,
) -> None:
    assert measure_free_disk(tmp_path / "a" / "b") > 0
