"""Free disk space: measured now and then, and required for claiming more work."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.clock import Clock
from holdfast.model.units import describe_size, parse_size
from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.store_port import StorePort

LOOK_EVERY = 1.0

log = logging.getLogger("holdfast.worker")


def measure_free_disk(folder: Path) -> int:
    """The free bytes on the disk where a folder is or will be."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return shutil.disk_usage(there).free


def describe_low_disk(free: int, least: int) -> str | None:
    """The reason why nothing is claimed with so little space; None if there is enough."""
    if free >= least:
        return None
    limit = describe_size(least)
    return f"{describe_size(free)} of disk are free, and it claims nothing below {limit}"


def find_worker_disk(store: StorePort, options: WorkerOptions) -> Disk:
    """The disk of a worker's logs and files."""
    root = find_state_directory(store.settings.url).root
    least = parse_size("least_disk", options.least_disk)
    return Disk(store.clock, least, lambda: measure_free_disk(root))


class Disk:
    """The free space of a disk; a warning is logged when it becomes too small, and when it ends."""

    def __init__(self, clock: Clock, least: int, measure: Callable[[], int]) -> None:
        self._clock = clock
        self._least = least
        self._measure = measure
        self._looked_at: float | None = None
        self.low: str | None = None

    def check(self) -> str | None:
        """The reason why nothing may be claimed now, if there is one."""
        now = self._clock.monotonic()
        if self._least == 0 or (self._looked_at is not None and now < self._looked_at + LOOK_EVERY):
            return self.low
        self._looked_at = now
        try:
            low = describe_low_disk(self._measure(), self._least)
        except OSError as error:
            log.warning("how much disk is free cannot be told: %s", error)
            return self.low
        if low is not None and self.low is None:
            log.warning("%s; what runs goes on", low)
            self.low = low
        elif low is None and self.low is not None:
            log.warning("there is enough disk again, and work is claimed")
            self.low = None
        return self.low
