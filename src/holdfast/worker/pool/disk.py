"""How much room there is for logs and worktrees, and whether that is enough to begin more work."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.clock import Clock
from holdfast.model.units import describe_size, parse_size
from holdfast.worker.files.state_directory import state_of
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.store_port import Office

LOOK_EVERY = 1.0

log = logging.getLogger("holdfast.worker")


def free_beside(folder: Path) -> int:
    """The free bytes where a folder is, or will be."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return shutil.disk_usage(there).free


def tell_low(free: int, least: int) -> str | None:
    """Why nothing is claimed with so little room; None where there is enough."""
    if free >= least:
        return None
    limit = describe_size(least)
    return f"{describe_size(free)} of disk are free, and it claims nothing below {limit}"


def disk_of(engine: Office, options: WorkerOptions) -> Disk:
    """The disk that a worker's logs and files are on."""
    root = state_of(engine.settings.url).root
    least = parse_size("least_disk", options.least_disk)
    return Disk(engine.clock, least, lambda: free_beside(root))


class Disk:
    """Looks now and then, and says once that it has become too full, and once that it is not."""

    def __init__(self, clock: Clock, least: int, free: Callable[[], int]) -> None:
        self._clock = clock
        self._least = least
        self._free = free
        self._looked: float | None = None
        self.low: str | None = None

    def look(self) -> str | None:
        """Why nothing may be claimed now, if so."""
        now = self._clock.monotonic()
        if self._least == 0 or (self._looked is not None and now < self._looked + LOOK_EVERY):
            return self.low
        self._looked = now
        try:
            low = tell_low(self._free(), self._least)
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
