"""Archive: a JSON file for each ended run and generation, written whole or not at all."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.model.hook import Ended
from holdfast.worker.attempt.step_context import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.engine.engine import Engine

log = logging.getLogger("holdfast.hooks")


class Archive:
    """Writes a run as JSON: the run, its tasks with their attempts, and its events."""

    def __init__(self, engine: Callable[[], Engine], directory: Path) -> None:
        self._engine = engine
        self._directory = directory
        for each in (directory, *directory.parents):
            if each.exists() and not each.is_dir():
                reason = f"{each} is a file; name a folder, which is made when it is needed"
                raise InvalidInput("directory", reason)

    def write(self, ctx: Context, event: Ended) -> str | None:
        """Write the run as it ended; returns the file, or None where the run has gone on.

        A called run is part of the file of the run at the top of the chain of calls.
        """
        record = self._engine().runs.record(str(event.run_id))
        if record.run.parent_id is not None:
            return None
        if record.run.version != event.version:
            log.info("%s has gone on since it ended; its next end is archived", event.run_id)
            return None
        self._directory.mkdir(parents=True, exist_ok=True)
        target = self._directory / f"{event.run_id}.{event.generation}.json"
        # The task is in the name, because another archive may write the same run here now.
        own = f".{target.name}.{ctx.task_id}"
        temporary = self._directory / f"{own}.{ctx.attempt}"
        ctx.guard()
        _write(temporary, record.to_json())
        ctx.guard()
        temporary.replace(target)
        _sync(self._directory)
        for leftover in self._directory.glob(f"{own}.*"):
            leftover.unlink(missing_ok=True)
        return str(target)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
